"""The sizes that a launch of TokenSpeed asks for, as far as its command line tells."""

from __future__ import annotations

from typing import Final

from ome.engines import Geometry, PodView, kit
from ome.engines.kit import CommandLine
from ome_engine_tokenspeed.launch import SERVER

__all__ = ["factors", "geometry_of", "size"]

_KV_BYTES: Final = {"": 2, "auto": 2, "bfloat16": 2, "fp8": 1, "fp8_e4m3": 1}


def size(line: CommandLine, name: str, default: int = 1) -> int | None:
    """A size of at least 1, None when it can't be known."""
    found = line.number(name, default)
    return found if found is None or found > 0 else None


def tensor(line: CommandLine) -> int | None:
    """The accelerators that share attention; two flags set it, one at a time."""
    name = "--attn-tp-size" if line.has("--attn-tp-size") else "--tensor-parallel-size"
    return size(line, name)


def factors(line: CommandLine) -> list[tuple[str, int]] | None:
    """What makes up the number of accelerators on all nodes."""
    if line.has("--world-size"):
        world = size(line, "--world-size")
        return None if world is None else [("world", world)]
    found = (
        ("tensor", tensor(line)),
        ("pipeline", size(line, "--pipeline-parallel-size")),
        ("data", size(line, "--data-parallel-size")),
    )
    known = [(name, number) for name, number in found if number is not None]
    return known if len(known) == len(found) else None


def geometry_of(view: PodView) -> Geometry | None:
    """The geometry of the server in view; None when its flags can't be read.

    With data parallelism, experts are shared by more accelerators than attention is, and how many share
    one copy of the weights isn't told; nor is it when the flags say how many there are in all.
    """
    line = kit.read_command_line(SERVER, view)
    if not line.is_readable:
        return None
    attention, pipeline = tensor(line), size(line, "--pipeline-parallel-size")
    replicas = size(line, "--data-parallel-size")
    is_told = replicas == 1 and not line.has("--world-size")
    known = attention is not None and pipeline is not None and is_told
    return Geometry(
        shards=(attention or 1) * (pipeline or 1) if known else None,
        attention_shards=attention,
        pipeline=pipeline,
        memory_fraction=_fraction(line),
        quantization=line.value("--quantization"),
        kv_bytes=_KV_BYTES.get(line.value("--kv-cache-dtype")),
    )


def _fraction(line: CommandLine) -> float | None:
    try:
        given = float(line.value("--gpu-memory-utilization"))
    except ValueError:
        return None
    return given if 0 < given <= 1 else None
