"""Rules about what a pod with TokenSpeed serves: its ports, its probes, its metrics, how long it drains."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ome.engines import Finding, PodView, Severity, kit
from ome.engines.kit import CommandLine, probe_handlers
from ome_engine_tokenspeed.launch import WORKER_MODULE, has_gateway, is_follower, is_headless

__all__ = ["find_drain", "find_loopback", "find_metrics", "find_probe_port", "find_worker_probe"]

_PORT: Final = 8000
_BOOTSTRAP_PORT: Final = 8998
_DEFAULT_DRAIN: Final = 30
_DEFAULT_GRACE: Final = 30
# What a server of another node answers, always alike.
_STUB: Final = ("/health", "/health_generate")

NO_ENDPOINT: Final = "a server of another node than the first answers nothing but /health"
NO_HTTP: Final = "a server without a gateway speaks gRPC alone, and the probe asks by HTTP"
NO_PORT: Final = "with --headless TokenSpeed listens on no port, and the probe asks one"
RANDOM_PORT: Final = "the gateway serves its metrics on a random port, so nothing can collect them"
SHORT: Final = (
    "gateway and engine may take {drain} s each for their requests, "
    "and the pod has {grace} s to stop"
)

_BY_COMMAND: Final = kit.loopback("TokenSpeedLoopback", "0.0.0.0")
_BY_MODULE: Final = kit.loopback("TokenSpeedLoopback", "127.0.0.1")


def find_loopback(view: PodView, line: CommandLine) -> Iterator[Finding]:
    """A server that nothing else reaches: `serve` listens everywhere, an engine alone doesn't."""
    if not is_headless(line):
        is_alone = line.launch.program == WORKER_MODULE
        yield from (_BY_MODULE if is_alone else _BY_COMMAND)(view, line)


def _other_ports(line: CommandLine, port: int) -> set[int]:
    """The ports that a server has open beside its own. Generous: what may be open counts."""
    found = {port + 1, _BOOTSTRAP_PORT}
    for name in ("--control-port", "--prometheus-port", "--disaggregation-bootstrap-port"):
        given = line.number(name, 0)
        found |= {given} if given else set()
    return found


_BY_PORT: Final = kit.probe_ports("TokenSpeedProbePort", _PORT, _other_ports)


def find_probe_port(view: PodView, line: CommandLine) -> Iterator[Finding]:
    """A probe on a port that nothing listens on."""
    if not is_headless(line):
        yield from _BY_PORT(view, line)


def find_worker_probe(view: PodView, line: CommandLine) -> Iterator[Finding]:
    """A probe that asks a server in a way that it never answers, because no gateway stands before it."""
    if not line.is_readable:
        return
    for name, handler, probe in probe_handlers(view):
        found = _unanswered(line, handler, probe)
        if found is not None:
            text, fix = found
            path = f"{name}.{handler}"
            code, reference = "TokenSpeedWorkerProbe", "InftyAI/llmaz#382"
            yield Finding(code, Severity.ERROR, text, path, fix, reference)


def _unanswered(
    line: CommandLine, handler: str, probe: Mapping[str, Any]
) -> tuple[str, str] | None:
    """Why a server doesn't answer a probe, and what to do."""
    if is_headless(line):
        return NO_PORT, "remove the probe, or ask with a command"
    if is_follower(line):
        path = str(probe.get("path") or "").partition("?")[0]
        is_answered = handler == "tcpSocket" or path in _STUB
        return None if is_answered else (NO_ENDPOINT, "remove the probe, or ask for /health")
    if line.launch.program == WORKER_MODULE and handler == "httpGet":
        return NO_HTTP, "write a grpc probe"
    return None


def find_metrics(view: PodView, line: CommandLine) -> Iterator[Finding]:
    """Metrics that are asked for and can't be found."""
    enabled = line.last("--enable-metrics")
    if enabled is None or not line.is_whole or not has_gateway(line):
        return
    if not line.has("--prometheus-port"):
        yield Finding(
            "TokenSpeedMetricsPort",
            Severity.WARNING,
            RANDOM_PORT,
            enabled.path,
            "add --prometheus-port",
        )


def find_drain(view: PodView, line: CommandLine) -> Iterator[Finding]:
    """A pod that is killed before its server has drained. A note where nobody set the times."""
    grace = view.pod.get("terminationGracePeriodSeconds")
    drain = line.number("--drain-timeout", _DEFAULT_DRAIN)
    if not has_gateway(line) or not isinstance(grace, int) or drain is None or grace > 2 * drain:
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
