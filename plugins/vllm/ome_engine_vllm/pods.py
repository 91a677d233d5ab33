"""Rules about the pod around the server: probes, ports, variables and time to stop."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ome.engines import Finding, PodView, Severity, kit
from ome.engines.kit import CommandLine, probe_handlers

__all__ = [
    "DEFAULT_PORT",
    "find_headless_probe",
    "find_port_variable",
    "find_ports",
    "find_probed_node",
    "find_shutdown",
]

DEFAULT_PORT: Final = 8000
SUPERVISOR_PORT: Final = 9256
MOST_REPLICAS: Final = 1024
DEFAULT_GRACE: Final = 30
# Service links give a Service's port this way: tcp://10.0.0.1:80.
_LINKED_SERVICE: Final = "vllm"

HEADLESS: Final = "the probe asks a server that is --headless: it answers nothing"
NODE: Final = "the probe asks a node of a Ray cluster for {path}, which only the server answers"
LINKED: Final = (
    "the Service vllm sets VLLM_PORT in its namespace's pods, and vLLM stops at its value"
)
ABORTS: Final = "the pod has {grace} s to stop, and vLLM aborts its requests at once"
TOO_LONG: Final = "vLLM may take {drain} s for its requests, and the pod has {grace} s to stop"


def _other_ports(line: CommandLine, port: int) -> set[int]:
    """The ports that a server has open beside its own. Generous: what may be open counts."""
    found = set()
    given = line.number("--grpc-port", 0)
    found |= {given} if given else set()
    if line.has("--data-parallel-multi-port-external-lb"):
        found.add(line.number("--data-parallel-supervisor-port", SUPERVISOR_PORT) or port)
        replicas = min(line.number("--data-parallel-size", 1) or 1, MOST_REPLICAS)
        found |= set(range(port, port + replicas))
    return found


_PORTS: Final = kit.probe_ports("VLLMProbePort", DEFAULT_PORT, _other_ports)


def find_ports(view: PodView, line: CommandLine) -> Iterator[Finding]:
    """A probe on a port that neither vLLM nor a neighbour in the pod listens on."""
    if not line.has("--uds") and not line.has("--headless"):
        yield from _PORTS(view, line)


def find_headless_probe(view: PodView, line: CommandLine) -> Iterator[Finding]:
    """A probe of a server that serves nothing."""
    if not line.is_readable or not line.has("--headless"):
        return
    for name, handler, _ in probe_handlers(view):
        yield Finding(
            "VLLMWorkerProbe",
            Severity.ERROR,
            HEADLESS,
            f"{name}.{handler}",
            "remove the probe, or ask with a command",
            "InftyAI/llmaz#382",
        )


def find_probed_node(view: PodView) -> Iterator[Finding]:
    """A probe of a Ray node by a path of the server's."""
    for name, handler, probe in probe_handlers(view):
        path = str(probe.get("path") or "").partition("?")[0]
        if path in ("/health", "/v1/models", "/ping"):
            yield Finding(
                "VLLMWorkerProbe",
                Severity.ERROR,
                NODE.format(path=path),
                f"{name}.{handler}.path",
                "remove the probe, or ask with a command such as ray status",
                "InftyAI/llmaz#382",
            )


def find_port_variable(view: PodView, _: CommandLine) -> Iterator[Finding]:
    """A Service whose link variable is one that vLLM reads."""
    env = {item.get("name") for item in view.container.get("env") or ()}
    if view.service != _LINKED_SERVICE or "VLLM_PORT" in env:
        return
    if view.pod.get("enableServiceLinks", True):
        fix = "set enableServiceLinks to false, or rename the InferenceService"
        reference = "vllm-project/vllm#15613"
        yield Finding("VLLMPortVariable", Severity.ERROR, LINKED, "env", fix, reference)


def find_shutdown(view: PodView, line: CommandLine) -> Iterator[Finding]:
    """A time to drain that the pod doesn't have, or a pod's time that vLLM doesn't use."""
    if not all("--shutdown-timeout" in release.by_spelling for release in line.releases):
        return
    grace = view.pod.get("terminationGracePeriodSeconds")
    drain = line.number("--shutdown-timeout", 0)
    if drain is None or not isinstance(grace, int | None):
        return
    flag = line.last("--shutdown-timeout")
    path = flag.path if flag is not None else line.path
    reference = "vllm-project/vllm#24885"
    if drain <= 0 and grace is not None and grace > DEFAULT_GRACE and line.is_readable:
        text = ABORTS.format(grace=grace)
        fix = f"set --shutdown-timeout, below {grace}"
        yield Finding("VLLMShutdown", Severity.WARNING, text, path, fix, reference)
    elif drain > 0:
        asleep = _sleep_before(view.container)
        left = (DEFAULT_GRACE if grace is None else grace) - asleep
        if drain >= left:
            text = TOO_LONG.format(drain=drain, grace=left)
            fix = f"set the pod's terminationGracePeriodSeconds above {drain + asleep}"
            yield Finding("VLLMShutdown", Severity.WARNING, text, path, fix, reference)


def _sleep_before(container: Any) -> int:
    """The seconds that a preStop hook sleeps, as far as it says."""
    hook = (container.get("lifecycle") or {}).get("preStop") or {}
    seconds = (hook.get("sleep") or {}).get("seconds")
    return seconds if isinstance(seconds, int) else 0
