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


def geometry_of(view: PodView) -> Geometry | None:
    """The geometry of the server in view; None when its flags can't be read."""
    if view.detection.opaque == CLUSTER_NODE:
        return None
    line = kit.read_command_line(SERVER, view)
    if not line.is_readable:
        return None
    tensor = kit.size(line, "--tensor-parallel-size")
    pipeline = kit.size(line, "--pipeline-parallel-size")
    # With experts spread over the replicas, accelerators share more than tensor x pipeline tells.
    is_spread = line.has("--enable-expert-parallel") and line.number("--data-parallel-size", 1) != 1
    known = tensor is not None and pipeline is not None and not is_spread
    return Geometry(
        shards=(tensor or 1) * (pipeline or 1) if known else None,
        attention_shards=tensor,
        pipeline=pipeline,
        memory_fraction=_fraction(line),
        quantization=line.value("--quantization"),
        kv_bytes=kit.kv_bytes(line),
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
