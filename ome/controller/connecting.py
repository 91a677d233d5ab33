"""Connecting to an API server: by a kubeconfig, or by the account of the pod."""

from __future__ import annotations

import asyncio
import logging
import os
from pathlib import Path
from typing import Any, Final
from urllib.request import getproxies

import yaml
from kubernetes.aio.client.api_client import ApiClient
from kubernetes.aio.client.configuration import Configuration
from kubernetes.aio.config import (
    ConfigException,
    load_incluster_config,
    load_kube_config,
    refresh_token,
)

from ome.controller.client import cause

__all__ = ["connect"]

_DEFAULT: Final = "~/.kube/config"
_RENEW_AGAIN: Final = 10.0
_log: Final = logging.getLogger("ome.controller.client")


class _Client(ApiClient):
    """A client whose credentials are renewed while it is open, where a kubeconfig gets them from somewhere
    else (an exec plugin, a cloud)."""

    _renewing: asyncio.Task[None] | None = None

    def keep_credentials(self, loader: Any) -> None:
        """Renew what `loader` has loaded."""
        self._renewing = asyncio.create_task(self._renew(loader))

    async def _renew(self, loader: Any) -> None:
        """The package looks each minute whether something has to be renewed; at once ends what needs
        none."""
        while True:
            try:
                renew: Any = refresh_token
                await renew(loader, self.configuration)
                return
            except Exception as error:
                _log.error(f"could not renew the credentials: {cause(error)}")
                await asyncio.sleep(_RENEW_AGAIN)

    async def close(self) -> None:
        """Close the connections."""
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.gather(self._renewing, return_exceptions=True)
        await super().close()  # type: ignore[no-untyped-call]


def _is_mapping(path: Path) -> bool:
    """Whether a file holds an object, or what its reader tells of better."""
    try:
        return isinstance(yaml.safe_load(path.read_bytes()), dict)
    except (OSError, UnicodeError, yaml.YAMLError):
        return True


def _checked(files: str) -> str:
    """The kubeconfigs of a list that are there, as kubectl reads it; what is no kubeconfig is told."""
    paths = [Path(each).expanduser() for each in files.split(os.pathsep) if each]
    found = [each for each in paths if each.exists()]
    if not found:
        raise ConfigException(f"{files}: there is no such file")
    for path in found:
        if not path.is_file():
            raise ConfigException(f"{path}: it is no file")
        if not _is_mapping(path):
            raise ConfigException(
                f"{path}: it holds no kubeconfig (an object with clusters and contexts)"
            )
    return os.pathsep.join(str(each) for each in found)


async def connect(kubeconfig: str | None = None, context: str | None = None) -> ApiClient:
    """A client by a kubeconfig file, or by the service account of the pod this runs in.

    `kubeconfig` None takes the files that `KUBECONFIG` lists, then the pod's account, then
    `~/.kube/config`. Raises ConfigException when there is nothing to connect with.
    """
    configuration = Configuration()
    # Watches hold their connections: no limit on them.
    configuration.connection_pool_maxsize = 0
    # Without proxies in the environment it isn't looked at for each request, in a thread.
    configuration.client_session_kwargs = {"trust_env": bool(getproxies())}
    files = kubeconfig or os.environ.get("KUBECONFIG")
    if files is None and context is None:
        try:
            load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
            return ApiClient(configuration)
        except ConfigException:
            pass
    try:
        files = _checked(files or _DEFAULT)
    except ConfigException as error:
        hint = "" if kubeconfig else "; name a kubeconfig with --kubeconfig"
        raise ConfigException(f"{error}{hint}") from None
    load: Any = load_kube_config
    try:
        loader = await load(config_file=files, context=context, client_configuration=configuration)
        if not configuration.host.startswith(("https://", "http://")):
            raise ConfigException(
                f'its server "{configuration.host}" is no https:// or http:// URL'
            )
        client = _Client(configuration)
        if loader._user is not None:  # what the package's own renewal looks at
            client.keep_credentials(loader)
        return client
    except Exception as error:
        # The package lets through whatever a file's contents bring about.
        text = " ".join(f"{files}: {cause(error)}".split())
        raise ConfigException(text) from error
