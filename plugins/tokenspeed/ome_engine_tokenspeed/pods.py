"""Rules of TokenSpeed's own: what a worker serves, how long a server drains, where its metrics are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from ome.engines import Finding, PodView, Severity
from ome.engines.kit import CommandLine, is_follower, loopback, probe_handlers, size, unknown
from ome_engine_tokenspeed.launch import WORKER_MODULE

__all__ = [
    "DEFAULT_PORT",
    "find_address",
    "find_drain",
    "find_loopback",
    "find_metrics",
    "find_role",
    "find_unknown",
    "find_worker_probe",
    "other_ports",
]

DEFAULT_PORT: Final = 8000
_BOOTSTRAP_PORT: Final = 8998
_DEFAULT_DRAIN: Final = 30
_DEFAULT_GRACE: Final = 30

NO_ENDPOINT: Final = "a server of another node than the first serves nothing, and the probe asks it"
RANDOM_PORT: Final = "the gateway serves its metrics on a random port, so nothing can collect them"
NO_ROLE: Final = "TokenSpeed takes pipeline stages on prefill servers alone, and stops"
NO_ADDRESS: Final = "TokenSpeed needs --dist-init-addr {why}, and stops"
LATE: Final = ", and the gateway stops at it only after the model has been loaded"
SHORT: Final = (
    "gateway and engine may take {drain} s each for their requests, "
    "and the pod has {grace} s to stop"
)


def other_ports(line: CommandLine, port: int) -> set[int]:
    """The ports that a server has open beside its own. Generous: what may be open counts."""
    found = {port + 1, _BOOTSTRAP_PORT}
    for name in ("--control-port", "--prometheus-port", "--disaggregation-bootstrap-port"):
        given = line.number(name, 0)
        found |= {given} if given else set()
    return found


_LOOPBACK: Final = loopback("TokenSpeedLoopback", "0.0.0.0")
_WORKER_LOOPBACK: Final = loopback("TokenSpeedLoopback", "127.0.0.1")
_UNKNOWN: Final = unknown("TokenSpeedFlagRemoved", "TokenSpeedFlagUnknown")


def find_loopback(view: PodView, line: CommandLine) -> Iterator[Finding]:
    """A server that nothing outside its pod can reach; an engine without a gateway is one by default."""
    is_worker = line.launch.program == WORKER_MODULE
    yield from (_WORKER_LOOPBACK if is_worker else _LOOPBACK)(view, line)


def find_unknown(view: PodView, line: CommandLine) -> Iterator[Finding]:
    """A flag that neither the engine nor the gateway has: it fails late, with the gateway."""
    for finding in _UNKNOWN(view, line):
        late = line.launch.program != WORKER_MODULE
        yield replace(finding, message=finding.message + LATE) if late else finding


def find_worker_probe(view: PodView, line: CommandLine) -> Iterator[Finding]:
    """A probe of a server of another node than the first: it replaces itself by the bare engine."""
    if not line.is_readable or not is_follower(line, "--node-rank"):
        return
    for name, handler, _ in probe_handlers(view):
        yield Finding(
            "TokenSpeedWorkerProbe",
            Severity.ERROR,
            NO_ENDPOINT,
            f"{name}.{handler}",
            "remove the probe, or ask with a command",
            "InftyAI/llmaz#382",
        )


def find_metrics(view: PodView, line: CommandLine) -> Iterator[Finding]:
    """Metrics that are asked for and can't be found."""
    enabled = line.last("--enable-metrics")
    if line.launch.program == WORKER_MODULE:
        return  # an engine alone has no gateway
    if enabled is not None and line.is_whole and not line.has("--prometheus-port"):
        yield Finding(
            "TokenSpeedMetricsPort",
            Severity.WARNING,
            RANDOM_PORT,
            enabled.path,
            "add --prometheus-port",
        )


def find_role(view: PodView, line: CommandLine) -> Iterator[Finding]:
    """Pipeline stages where there are none."""
    stages = line.last("--pipeline-parallel-size")
    if stages is None or not line.is_whole or (size(line, "--pipeline-parallel-size") or 1) < 2:
        return
    if line.value("--disaggregation-mode") != "prefill":
        fix = "use tensor parallelism, or --disaggregation-mode=prefill"
        yield Finding("TokenSpeedPipelineRole", Severity.ERROR, NO_ROLE, stages.path, fix)


def find_address(view: PodView, line: CommandLine) -> Iterator[Finding]:
    """Several replicas or nodes that don't know where to meet."""
    if not line.is_whole or line.has("--dist-init-addr"):
        return
    for name, why in (
        ("--nnodes", "with several nodes"),
        ("--data-parallel-size", "for data parallelism"),
    ):
        flag = line.last(name)
        if flag is not None and (size(line, name) or 1) > 1:
            yield Finding(
                "TokenSpeedNoAddress",
                Severity.ERROR,
                NO_ADDRESS.format(why=why),
                flag.path,
                "add --dist-init-addr=HOST:PORT",
            )
            return


def find_drain(view: PodView, line: CommandLine) -> Iterator[Finding]:
    """A pod that is killed before its server has drained. Said of times that somebody set alone."""
    grace = view.pod.get("terminationGracePeriodSeconds")
    drain = line.number("--drain-timeout", _DEFAULT_DRAIN)
    if not isinstance(grace, int) or drain is None or grace > 2 * drain:
        return
    is_set = line.has("--drain-timeout") or grace != _DEFAULT_GRACE
    yield Finding(
        "TokenSpeedDrain",
        Severity.WARNING if is_set else Severity.NOTE,
        SHORT.format(drain=drain, grace=grace),
        "",
        f"set the pod's terminationGracePeriodSeconds above {2 * drain}",
        "llm-d/llm-d#1525",
    )
