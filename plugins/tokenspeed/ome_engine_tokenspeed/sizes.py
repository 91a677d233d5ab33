"""The sizes that a launch of TokenSpeed asks for, as far as its command line tells."""

from __future__ import annotations

from ome.engines import Geometry, PodView, kit
from ome.engines.kit import CommandLine
from ome_engine_tokenspeed.launch import SERVER

__all__ = ["factors", "geometry_of"]


def tensor(line: CommandLine) -> int | None:
    """The accelerators that share attention; two flags set it, one at a time."""
    name = "--attn-tp-size" if line.has("--attn-tp-size") else "--tensor-parallel-size"
    return kit.size(line, name)


def factors(line: CommandLine) -> list[tuple[str, int]] | None:
    """What makes up the number of accelerators on all nodes."""
    if line.has("--world-size"):
        world = kit.size(line, "--world-size")
        return None if world is None else [("world", world)]
    found = (
        ("tensor", tensor(line)),
        ("pipeline", kit.size(line, "--pipeline-parallel-size")),
        ("data", kit.size(line, "--data-parallel-size")),
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
    attention, pipeline = tensor(line), kit.size(line, "--pipeline-parallel-size")
    replicas = kit.size(line, "--data-parallel-size")
    is_told = replicas == 1 and not line.has("--world-size")
    known = attention is not None and pipeline is not None and is_told
    return Geometry(
        shards=(attention or 1) * (pipeline or 1) if known else None,
        attention_shards=attention,
        pipeline=pipeline,
        memory_fraction=kit.fraction(line, "--gpu-memory-utilization"),
        quantization=line.value("--quantization"),
        kv_bytes=kit.kv_bytes(line),
    )
