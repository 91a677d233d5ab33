"""How a launch of SGLang spreads a model over accelerators, as far as its command line tells."""

from __future__ import annotations

from typing import Final

from ome.engines import Geometry, PodView
from ome.engines.kit import CommandLine
from ome_engine_sglang.commandline import read_command_line

__all__ = ["geometry_of"]

_KV_BYTES: Final = {
    "": 2,
    "auto": 2,
    "bf16": 2,
    "bfloat16": 2,
    "fp8_e4m3": 1,
    "fp8_e5m2": 1,
}


def geometry_of(view: PodView) -> Geometry | None:
    """The geometry of the server in view; None when its flags can't be read.

    Expert parallelism and attention's data parallelism lie inside tensor parallelism: the weights are
    shared by tensor x pipeline accelerators either way. Without a flag SGLang chooses the memory fraction
    by itself.
    """
    line = read_command_line(view)
    if not line.is_readable or not line.is_tabled:
        return None
    tensor, pipeline = _size(line, "--tp-size"), _size(line, "--pp-size")
    known = tensor is not None and pipeline is not None
    return Geometry(
        shards=(tensor or 1) * (pipeline or 1) if known else None,
        attention_shards=_attention_shards(line, tensor),
        pipeline=pipeline,
        memory_fraction=_fraction(line),
        quantization=line.value("--quantization"),
        kv_bytes=_KV_BYTES.get(line.value("--kv-cache-dtype")),
    )


def _size(line: CommandLine, name: str) -> int | None:
    size = line.number(name, 1)
    return size if size is None or size > 0 else None


def _attention_shards(line: CommandLine, tensor: int | None) -> int | None:
    """The accelerators that share the attention heads; its replicas divide those of the tensors."""
    replicas = _size(line, "--attn-dp-size")
    if line.has("--enable-dp-attention"):
        replicas = _size(line, "--dp-size")
    if tensor is None or replicas is None or tensor % replicas:
        return None
    return tensor // replicas


def _fraction(line: CommandLine) -> float | None:
    try:
        given = float(line.value("--mem-fraction-static"))
    except ValueError:
        return None
    return given if 0 < given <= 1 else None
