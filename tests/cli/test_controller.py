"""The flags of `ome controller`: what is accepted, and one clear line for what isn't."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ome.cli import controller
from ome.cli.main import build_parser, main
from ome.controller.leading import Times
from ome.controller.options import Address, Options

SEE = "\nSee 'ome controller --help' for usage.\n"

REFUSED = {
    "a webhook": (["--webhook"], "--webhook: this version of OME serves no admission webhooks"),
    "no duration": (
        ["--sync-period=10"],
        '--sync-period: "10" is no duration such as 30s, 5m or 24h',
    ),
    "a period of nothing": (["--sync-period=0"], "--sync-period: it must be greater than 0"),
    "no age": (
        ["--config-cache-ttl=soon"],
        '--config-cache-ttl: "soon" is no duration such as 30s, 5m or 24h',
    ),
    "no address": (
        ["--health-probe-addr=8081"],
        '--health-probe-addr: "8081" is no address such as :8081, or 0 to listen nowhere',
    ),
    "no worker": (
        ["--inferenceservice-max-concurrent-reconciles=0"],
        "--inferenceservice-max-concurrent-reconciles: it must be at least 1",
    ),
    "a rate below zero": (
        ["--kube-api-qps=-1"],
        '--kube-api-qps: "-1" is no number from 0 on',
    ),
    "a rate without a burst": (
        ["--kube-api-qps=5"],
        "--kube-api-burst: it is needed when --kube-api-qps is set",
    ),
    "no namespace": (
        ["--ome-namespace=Bad NS"],
        '--ome-namespace: "Bad NS" is no namespace: use lower-case letters, digits and dashes',
    ),
    "no namespace for the election": (
        ["--leader-election-namespace=a_b"],
        '--leader-election-namespace: "a_b" is no namespace: use lower-case letters, digits and dashes',
    ),
    "no count": (
        ["--runtime-revision-retention=many"],
        '--runtime-revision-retention: "many" is no whole number from 0 on',
    ),
    "a Lease that ends before its renewal": (
        ["--leader-elect-lease-duration=5s"],
        "the leader election's lease duration must be greater than its renew deadline",
    ),
}


@pytest.mark.parametrize(("flags", "complaint"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(
    flags: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["controller", *flags]) == 2
    assert capsys.readouterr().err == f"error: {complaint}{SEE}"


def test_the_namespace_of_the_pod_is_checked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("POD_NAMESPACE", "Bad NS")
    assert main(["controller"]) == 2
    assert capsys.readouterr().err.startswith('error: POD_NAMESPACE: "Bad NS" is no namespace: ')
    # A flag wins over it.
    assert _options("--ome-namespace=ome").ome_namespace == "ome"


def _options(*flags: str) -> Options:
    found = controller._settings(build_parser("ome").parse_args(["controller", *flags]))
    assert isinstance(found, Options)
    return found


def test_the_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POD_NAMESPACE", raising=False)
    assert _options() == Options()


def test_every_flag(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POD_NAMESPACE", "system")
    found = _options(
        "--kubeconfig=k",
        "--context=c",
        "--health-probe-addr=127.0.0.1:1",
        "--metrics-bind-address=0",
        "--webhook=false",
        "--leader-elect",
        "--leader-elect-lease-duration=60s",
        "--leader-elect-renew-deadline=40s",
        "--leader-elect-retry-period=8s",
        "--inferenceservice-max-concurrent-reconciles=4",
        "--kube-api-qps=100",
        "--kube-api-burst=200",
        "--sync-period=1h30m",
        "--config-cache-ttl=0",
        "--runtime-revision-retention=3",
        "--runtime-revision-grace-period=1h",
    )
    assert found == Options(
        kubeconfig="k",
        context="c",
        ome_namespace="system",
        health=Address("127.0.0.1", 1),
        metrics=None,
        leader_elect=True,
        election_namespace="system",
        times=Times(60.0, 40.0, 8.0),
        workers=4,
        qps=100.0,
        burst=200,
        resync=5400.0,
        retention=3,
        grace=3600.0,
    )
    apart = _options("--ome-namespace=ome", "--leader-election-namespace=leases")
    assert (apart.ome_namespace, apart.election_namespace) == ("ome", "leases")


def test_its_packages_are_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    assert main(["controller"]) == 1
    assert capsys.readouterr().err == (
        "error: the controller's own packages are missing (prometheus_client); install them with: "
        "pip install 'ome[controller]'\n"
    )


CLUSTER = """
current-context: x
contexts: [{name: x, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "%s"%s}}]
users: [{name: u, user: {}}]
"""
KUBECONFIGS: dict[str, tuple[bytes, str]] = {
    "no YAML": (b"a: [", "while parsing a flow node expected the node content"),
    "no text": (b"\xff\xfe\x00", "'utf-8' codec can't decode byte 0xff"),
    "a list": (b"[]", "it holds no kubeconfig (an object with clusters and contexts)"),
    "nothing": (b"", "it holds no kubeconfig (an object with clusters and contexts)"),
    "no such context": (
        b"{current-context: x, contexts: [], clusters: []}",
        "Invalid kube-config file. Expected object with name x in",
    ),
    "no URL": (
        (CLUSTER % ("nonsense", "")).encode(),
        'its server "nonsense" is no https:// or http:// URL',
    ),
    "no certificate": (
        (CLUSTER % ("https://127.0.0.1:1", ', certificate-authority-data: "!!!"')).encode(),
        "",
    ),
    "a file that is missing": (
        (CLUSTER % ("https://127.0.0.1:1", ", certificate-authority: /nowhere")).encode(),
        "File does not exists: /nowhere",
    ),
}


@pytest.mark.parametrize("name", KUBECONFIGS)
def test_a_kubeconfig_that_cannot_be_used(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, said = KUBECONFIGS[name]
    path = tmp_path / "config"
    path.write_bytes(data)
    assert main(["controller", f"--kubeconfig={path}", "--engines=none"]) == 1
    (line,) = [each for each in capsys.readouterr().err.splitlines() if "error" in each]
    assert line.startswith(f"error: no cluster to connect to: {path}: {said}")


def test_no_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["controller", f"--kubeconfig={tmp_path / 'none'}", "--engines=none"]) == 1
    (line,) = [each for each in capsys.readouterr().err.splitlines() if each.startswith("error: ")]
    assert line == f"error: no cluster to connect to: {tmp_path / 'none'}: there is no such file"
    assert main(["controller", f"--kubeconfig={tmp_path}", "--engines=none"]) == 1
    assert f"{tmp_path}: it is no file" in capsys.readouterr().err
