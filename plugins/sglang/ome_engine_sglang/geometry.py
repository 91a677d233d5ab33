"""How a launch of SGLang spreads a model over accelerators, as far as its command line tells."""

from __future__ import annotations

from ome.engines import Geometry, PodView, kit
from ome.engines.kit import CommandLine
from ome_engine_sglang.commandline import read_command_line

__all__ = ["geometry_of"]


def geometry_of(view: PodView) -> Geometry | None:
    """The geometry of the server in view; None when its flags can't be read.

    Expert parallelism and attention's data parallelism lie inside tensor parallelism: the weights are
    shared by tensor x pipeline accelerators either way. Without a flag SGLang chooses the memory fraction
    by itself.
    """
    line = read_command_line(view)
    if not line.is_readable or not line.is_tabled:
        return None
    tensor, pipeline = kit.size(line, "--tp-size"), kit.size(line, "--pp-size")
    known = tensor is not None and pipeline is not None
    return Geometry(
        shards=(tensor or 1) * (pipeline or 1) if known else None,
        attention_shards=_attention_shards(line, tensor),
        pipeline=pipeline,
        memory_fraction=kit.fraction(line, "--mem-fraction-static"),
        quantization=line.value("--quantization"),
        kv_bytes=kit.kv_bytes(line),
    )


def _attention_shards(line: CommandLine, tensor: int | None) -> int | None:
    """The accelerators that share the attention heads; its replicas divide those of the tensors."""
    replicas = kit.size(line, "--attn-dp-size")
    if line.has("--enable-dp-attention"):
        replicas = kit.size(line, "--dp-size")
    if tensor is None or replicas is None or tensor % replicas:
        return None
    return tensor // replicas
