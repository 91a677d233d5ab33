"""How a launch of vLLM spreads a model over accelerators, as far as its command line tells."""

from __future__ import annotations

from typing import Final

from ome.engines import Geometry, PodView, kit
from ome.engines.kit import CommandLine, Release, order_of
from ome_engine_vllm.detect import CLUSTER_NODE
from ome_engine_vllm.launch import SERVER

__all__ = ["geometry_of"]

# vLLM's default of --gpu-memory-utilization, and before the version that raised it.
_FRACTION: Final = 0.92
_FRACTION_BEFORE: Final = 0.90
_RAISED_IN: Final = order_of("0.20.1") or ()
_CONTEXT: Final = ("--decode-context-parallel-size", "--prefill-context-parallel-size")


def geometry_of(view: PodView) -> Geometry | None:
    """The geometry of the server in view; None when its flags can't be read."""
    if view.detection.opaque == CLUSTER_NODE:
        return None
    line = kit.read_command_line(SERVER, view)
    tensor = kit.size(line, "--tensor-parallel-size")
    pipeline = kit.size(line, "--pipeline-parallel-size")
    # With experts spread over the replicas, accelerators share more than tensor x pipeline tells.
    is_spread = line.has("--enable-expert-parallel") and line.number("--data-parallel-size", 1) != 1
    # Context parallelism keeps a part of each sequence on each accelerator.
    is_shared = any(line.has(flag) and kit.size(line, flag) != 1 for flag in _CONTEXT)
    return kit.spread(
        line,
        shards=None if is_spread else kit.product(tensor, pipeline),
        attention=tensor,
        pipeline=pipeline,
        memory=_fraction(line),
        kv_bytes=None if is_shared else kit.cache_bytes(line),
    )


def _fraction(line: CommandLine) -> float | None:
    """The part of the memory that vLLM takes; None when a flag says it in a way that isn't known."""
    if line.last("--gpu-memory-utilization") is not None:
        return kit.fraction(line, "--gpu-memory-utilization")
    defaults = {_default(release) for release in line.releases}
    return defaults.pop() if len(defaults) == 1 and line.is_whole else None


def _default(release: Release) -> float:
    at = order_of(release.version)
    return _FRACTION if at is not None and at >= _RAISED_IN else _FRACTION_BEFORE
