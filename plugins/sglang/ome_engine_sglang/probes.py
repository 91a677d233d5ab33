"""Probes that can't succeed: on a port nothing listens on, or with too little time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ome.engines import Finding, PodView, Severity
from ome_engine_sglang.commandline import CommandLine
from ome_engine_sglang.flags import order_of

__all__ = ["PROBES", "find_ports", "find_timeouts"]

PROBES: Final = ("startupProbe", "readinessProbe", "livenessProbe")
HANDLERS: Final = ("httpGet", "tcpSocket", "grpc")
DEFAULT_PORT: Final = 30000
BOOTSTRAP_PORT: Final = 8998
LEAST_TIMEOUT: Final = 2
_SLOW_SINCE: Final = (0, 5, 1, 0)
_CHEAP_SINCE: Final = (0, 5, 6, 0)
_CHEAP: Final = "SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION"

WRONG_PORT: Final = "the probe asks port {port}, SGLang listens on {listened}"
NO_SUCH_PORT: Final = 'the probe asks the port "{port}", which the container doesn\'t name'
TOO_SHORT: Final = "{path} never answers in under 1 s, and the probe gives up after {timeout}"


def find_ports(view: PodView, line: CommandLine) -> Iterator[Finding]:
    """A probe on a port that neither SGLang nor a neighbour in the pod listens on."""
    port = _port_of(line)
    if port is None:
        return
    listened = _listened(port, line) | _ports_of_neighbours(view)
    for name, handler, probe in _handlers(view):
        asked = _asked_port(probe, view)
        if probe.get("host") or asked in listened:
            continue
        path = f"{name}.{handler}.port"
        text = WRONG_PORT.format(port=asked, listened=port)
        if asked is None:
            text = NO_SUCH_PORT.format(port=probe.get("port"))
        yield Finding("SGLangProbePort", Severity.ERROR, text, path, f"set it to {port}")


def _port_of(line: CommandLine) -> int | None:
    """The port of the server, None if it can't be known."""
    if line.last("--port") is None and not line.is_language:
        return None
    return line.number("--port", DEFAULT_PORT)


def _listened(port: int, line: CommandLine) -> set[int]:
    """The ports that a server has open for others. Generous: what may be open counts."""
    found = {port, BOOTSTRAP_PORT}
    for name in ("--disaggregation-bootstrap-port", "--grpc-port", "--smg-http-sidecar-port"):
        given = line.number(name, 0)
        found |= {given} if given else set()
    if line.has("--grpc-mode") or line.has("--smg-grpc-mode"):
        found |= {port + 1, port + 10_000}  # metrics beside gRPC; which of them, the image decides
    return found


def _ports_of_neighbours(view: PodView) -> set[int]:
    name = view.container.get("name")
    others = [one for one in view.pod.get("containers") or () if one.get("name") != name]
    others += view.pod.get("initContainers") or ()
    return {port.get("containerPort") for one in others for port in one.get("ports") or ()}


def _handlers(view: PodView) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for name in PROBES:
        probe = view.container.get(name) or {}
        for handler in HANDLERS:
            if probe.get(handler):
                yield name, handler, probe[handler]


def _asked_port(probe: Mapping[str, Any], view: PodView) -> int | None:
    """The number of a probe's port, None for a name that the container doesn't have."""
    port = probe.get("port")
    if isinstance(port, int):
        return port
    if str(port).isdecimal():
        return int(str(port))
    named = [one for one in view.container.get("ports") or () if one.get("name") == port]
    found = named[0].get("containerPort") if named else None
    return found if isinstance(found, int) else None


def find_timeouts(view: PodView, line: CommandLine) -> Iterator[Finding]:
    """A probe that gives up before `/health` can answer."""
    if not line.is_language:
        return
    if line.is_readable and line.number("--node-rank", 0) not in (0, None):
        return  # other ranks answer from a stub, at once
    for name in PROBES:
        probe = view.container.get(name) or {}
        path = _slow_path(probe, view, line)
        timeout = probe.get("timeoutSeconds")
        if path is None or not isinstance(timeout, int | None) or (timeout or 1) >= LEAST_TIMEOUT:
            continue
        shown = f"{timeout} s" if timeout else "1 s, its default"
        yield Finding(
            "SGLangProbeTimeout",
            Severity.WARNING,
            TOO_SHORT.format(path=path, timeout=shown),
            f"{name}.timeoutSeconds",
            f"set timeoutSeconds to at least {LEAST_TIMEOUT}, better 30",
            "modelplaneai/modelplane#206",
        )


def _slow_path(probe: Mapping[str, Any], view: PodView, line: CommandLine) -> str | None:
    """The path that a probe asks, if answering it takes a request to the model."""
    path = str((probe.get("httpGet") or {}).get("path") or "").partition("?")[0]
    if path == "/health_generate":
        return path
    return path if path == "/health" and not _is_cheap(view, line) else None


def _is_cheap(view: PodView, line: CommandLine) -> bool:
    """Whether `/health` answers without the model: before 0.5.1, or told to, which works from 0.5.6."""
    version = order_of(line.version)
    if version is not None and version < _CHEAP_SINCE:
        return version < _SLOW_SINCE
    env = {item.get("name"): item.get("value") for item in view.container.get("env") or ()}
    return str(env.get(_CHEAP)).lower() in ("0", "false", "no", "n")
