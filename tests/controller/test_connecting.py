"""How the controller finds its API server, and keeps its credentials."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from kubernetes.aio.client.configuration import Configuration
from kubernetes.aio.config import ConfigException, refresh_token

from ome.controller.connecting import connect
from tests.controller.conftest import in_loop, until

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: one
clusters:
- {name: a, cluster: {server: "http://127.0.0.1:1"}}
- {name: b, cluster: {server: "http://127.0.0.1:2"}}
contexts:
- {name: one, context: {cluster: a, user: u}}
- {name: two, context: {cluster: b, user: u}}
users:
- {name: u, user: {token: t}}
"""


@pytest.mark.parametrize(
    "context, host", [(None, "http://127.0.0.1:1"), ("two", "http://127.0.0.1:2")]
)
@in_loop
async def test_connects_by_a_kubeconfig(tmp_path: Path, context: str | None, host: str) -> None:
    path = tmp_path / "config"
    path.write_text(KUBECONFIG)
    client = await connect(str(path), context)
    assert client.configuration.host == host
    assert await client.configuration.get_api_key_with_prefix("BearerToken") == "Bearer t"
    await client.close()  # type: ignore[no-untyped-call]


EXEC = """#!/bin/sh
echo x >> {count}
echo '{{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": '
echo '{{"token": "t'$(wc -l < {count})'", "expirationTimestamp": "2026-01-01T00:00:00Z"}}}}'
"""


@in_loop
async def test_credentials_of_a_plugin_are_renewed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    plugin, path = tmp_path / "plugin", tmp_path / "config"
    plugin.write_text(EXEC.format(count=tmp_path / "count"))
    plugin.chmod(0o755)
    user = f"exec: {{command: {plugin}, apiVersion: client.authentication.k8s.io/v1}}"
    path.write_text(KUBECONFIG.replace("token: t", user))
    monkeypatch.setattr(
        "ome.controller.connecting.refresh_token", partial(refresh_token, interval=0.01)
    )
    monkeypatch.setattr("ome.controller.connecting._RENEW_AGAIN", 0.01)
    client = await connect(str(path))

    def token() -> str:
        return str(client.configuration.api_key["BearerToken"])

    first = token()
    assert first.startswith("Bearer t")
    await until(lambda: token() != first)
    # A plugin that fails is told, and asked again.
    plugin.write_text("#!/bin/sh\nexit 1\n")
    await until(lambda: "exec: process returned 1" in caplog.messages)
    plugin.write_text(EXEC.format(count=tmp_path / "count"))
    second = token()
    await until(lambda: token() != second)
    await client.close()  # type: ignore[no-untyped-call]


@in_loop
async def test_a_renewal_that_breaks_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "config"
    path.write_text(KUBECONFIG)
    asked = []

    async def renew(*_: Any) -> None:
        asked.append(1)
        if len(asked) == 1:
            raise KeyError("token")

    monkeypatch.setattr("ome.controller.connecting.refresh_token", renew)
    monkeypatch.setattr("ome.controller.connecting._RENEW_AGAIN", 0.01)
    client = await connect(str(path))
    await until(lambda: len(asked) == 2)
    assert caplog.messages == ["could not renew the credentials: 'token'"]
    await client.close()  # type: ignore[no-untyped-call]


@in_loop
async def test_connects_without_a_user(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "config"
    path.write_text(KUBECONFIG.replace(", user: u}", "}"))
    client = await connect(str(path))
    await asyncio.sleep(0.01)
    await client.close()  # type: ignore[no-untyped-call]
    assert caplog.records == []


@in_loop
async def test_connects_by_the_pods_account(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def account(client_configuration: Configuration) -> None:
        client_configuration.host = "https://10.0.0.1:443"

    monkeypatch.setattr("ome.controller.connecting.load_incluster_config", account)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    client = await connect()
    assert client.configuration.host == "https://10.0.0.1:443"
    await client.close()  # type: ignore[no-untyped-call]
    # A flag comes before the account, and so does KUBECONFIG.
    path = tmp_path / "config"
    path.write_text(KUBECONFIG)
    client = await connect(str(path))
    assert client.configuration.host == "http://127.0.0.1:1"
    await client.close()  # type: ignore[no-untyped-call]
    monkeypatch.setenv("KUBECONFIG", str(path))
    client = await connect(context="two")
    assert client.configuration.host == "http://127.0.0.1:2"
    await client.close()  # type: ignore[no-untyped-call]
    client = await connect()
    assert client.configuration.host == "http://127.0.0.1:1"
    await client.close()  # type: ignore[no-untyped-call]


@in_loop
async def test_of_a_list_of_files_those_that_are_there_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "config"
    path.write_text(KUBECONFIG)
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'none'}:{path}:")
    client = await connect()
    assert client.configuration.host == "http://127.0.0.1:1"
    await client.close()  # type: ignore[no-untyped-call]


@in_loop
async def test_nothing_to_connect_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setattr("ome.controller.connecting._DEFAULT", str(tmp_path / "none"))
    text = f"{tmp_path / 'none'}: there is no such file; name a kubeconfig with --kubeconfig"
    with pytest.raises(ConfigException) as caught:
        await connect()
    assert str(caught.value) == text
