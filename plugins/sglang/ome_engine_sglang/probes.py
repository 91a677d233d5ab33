"""Probes of SGLang: which ports answer, and which paths take their time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ome.engines import Finding, PodView, Severity
from ome.engines.kit import PROBES, CommandLine
from ome_engine_sglang.flags import order_of

__all__ = ["DEFAULT_PORT", "find_grace", "find_timeouts", "find_worker_probe", "other_ports"]

DEFAULT_PORT: Final = 30000
BOOTSTRAP_PORT: Final = 8998
LEAST_TIMEOUT: Final = 2
_SLOW_SINCE: Final = order_of("0.5.1") or ()
_CHEAP_SINCE: Final = order_of("0.5.6") or ()
_CHEAP: Final = "SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION"

STUB: Final = "a server of rank {rank} answers /health alone, and the probe asks {path}"
SHORT_GRACE: Final = (
    "SGLang finishes its requests before it stops, however long they take; "
    "this pod is killed after {grace} s"
)
DEFAULT_GRACE: Final = 30

TOO_SHORT: Final = "{path} never answers in under 1 s, and the probe gives up after {timeout}"


def other_ports(line: CommandLine, port: int) -> set[int]:
    """The ports that a server has open beside its own. Generous: what may be open counts."""
    found = {BOOTSTRAP_PORT}
    for name in ("--disaggregation-bootstrap-port", "--grpc-port", "--smg-http-sidecar-port"):
        given = line.number(name, 0)
        found |= {given} if given else set()
    if line.has("--grpc-mode") or line.has("--smg-grpc-mode"):
        found |= {port + 1, port + 10_000}  # metrics beside gRPC; which of them, the image decides
    return found


def find_timeouts(view: PodView, line: CommandLine) -> Iterator[Finding]:
    """A probe that gives up before `/health` can answer."""
    if not line.is_tabled:
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


def find_worker_probe(view: PodView, line: CommandLine) -> Iterator[Finding]:
    """A probe of a server of another rank than 0, which has a stub at `/health` and nothing else."""
    rank = line.number("--node-rank", 0)
    if not rank or not line.is_readable:
        return
    for name in PROBES:
        asked = (view.container.get(name) or {}).get("httpGet") or {}
        path = str(asked.get("path") or "/").partition("?")[0]
        if asked and path != "/health":
            yield Finding(
                "SGLangWorkerProbe",
                Severity.ERROR,
                STUB.format(rank=rank, path=path),
                f"{name}.httpGet.path",
                "ask /health, or leave the probe out",
                "InftyAI/llmaz#382",
            )


def find_grace(view: PodView, line: CommandLine) -> Iterator[Finding]:
    """A pod with no more time to stop than Kubernetes' default."""
    grace = view.pod.get("terminationGracePeriodSeconds")
    if view.component == "router" or not isinstance(grace, int) or grace > DEFAULT_GRACE:
        return
    if line.is_tabled:
        yield Finding(
            "SGLangGrace",
            Severity.NOTE,
            SHORT_GRACE.format(grace=grace),
            "",
            "set terminationGracePeriodSeconds to what the longest answers take",
            "llm-d/llm-d#1525",
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
