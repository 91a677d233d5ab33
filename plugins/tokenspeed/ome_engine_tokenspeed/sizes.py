"""The sizes that a launch of TokenSpeed asks for, as far as its command line tells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ome.engines import Geometry, PodView, kit
from ome.engines.kit import CommandLine
from ome_engine_tokenspeed.launch import SERVER

__all__ = ["Layout", "factors", "geometry_of", "layout_of"]

# Flags that share layers of one kind in another way than attention, or a sequence.
_SPLIT: Final = ("--dense-tp-size", "--moe-tp-size")
_HEADS: Final = ("--attn-head-tp-size", "--prefill-context-parallel-size")
_CONTEXT: Final = ("--decode-context-parallel-size", "--prefill-context-parallel-size")
# fp8 with a scale of one byte for 32 numbers.
_MXFP8: Final = 33 / 32


@dataclass(frozen=True, slots=True)
class Layout:
    """The sizes of a launch: `world` is all accelerators, which is tensor x pipeline x data.

    `tensor` counts the accelerators that share attention. None is "can't be known", and is what sizes
    that don't go together give.
    """

    tensor: int | None
    pipeline: int | None
    data: int | None
    world: int | None


def layout_of(line: CommandLine) -> Layout:
    """The sizes of a launch. With a world's size, what isn't given takes what is left of it."""
    tensor_flag = "--attn-tp-size" if line.has("--attn-tp-size") else "--tensor-parallel-size"
    pipeline = kit.size(line, "--pipeline-parallel-size")
    tensor, data = kit.size(line, tensor_flag), kit.size(line, "--data-parallel-size")
    if not line.has("--world-size"):
        return Layout(tensor, pipeline, data, kit.product(tensor, pipeline, data))
    world = kit.size(line, "--world-size")
    if not line.has(tensor_flag):
        tensor = _divided(world, kit.product(pipeline, data))
    if not line.has("--data-parallel-size"):
        data = _divided(world, kit.product(pipeline, tensor))
    return Layout(tensor, pipeline, data, world)


def _divided(whole: int | None, part: int | None) -> int | None:
    return None if whole is None or part is None or whole % part else whole // part


def factors(line: CommandLine) -> list[tuple[str, int]] | None:
    """What makes up the number of accelerators on all nodes."""
    found = layout_of(line)
    if found.world is not None and line.has("--world-size"):
        return [("world", found.world)]
    if found.tensor is None or found.pipeline is None or found.data is None:
        return None
    return [("tensor", found.tensor), ("pipeline", found.pipeline), ("data", found.data)]


def geometry_of(view: PodView) -> Geometry | None:
    """The geometry of the server in view; None when its flags can't be read.

    With data parallelism, experts are shared by more accelerators than attention is, and how many share
    one copy of the weights isn't told; nor is it when layers of one kind have a size of their own.
    """
    line = kit.read_command_line(SERVER, view)
    found = layout_of(line)
    is_even = found.data == 1 and not any(line.has(flag) for flag in _SPLIT)
    return kit.spread(
        line,
        shards=kit.product(found.tensor, found.pipeline) if is_even else None,
        attention=None if _is_given(line, _HEADS) else found.tensor,
        pipeline=found.pipeline,
        memory=kit.fraction(line, "--gpu-memory-utilization"),
        kv_bytes=_cache_bytes(line),
    )


def _cache_bytes(line: CommandLine) -> float | None:
    has_scales = line.value("--kv-cache-quant-method") not in ("", "none")
    if has_scales or _is_given(line, _CONTEXT):
        return None
    is_blockwise = line.value("--kv-cache-dtype") == "mxfp8"
    return _MXFP8 if is_blockwise else kit.cache_bytes(line)


def _is_given(line: CommandLine, flags: tuple[str, ...]) -> bool:
    """Whether one of the flags is given, and not as 1."""
    return any(line.has(flag) and kit.size(line, flag) != 1 for flag in flags)
