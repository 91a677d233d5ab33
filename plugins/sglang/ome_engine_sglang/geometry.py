"""How a launch of SGLang spreads a model over accelerators, as far as its command line tells."""

from __future__ import annotations

from ome.engines import Geometry, PodView, kit
from ome.engines.kit import CommandLine
from ome_engine_sglang.commandline import read_command_line

__all__ = ["geometry_of"]


def geometry_of(view: PodView) -> Geometry | None:
    """The geometry of the server in view; None when its flags can't be read.

    Expert parallelism and attention's data and context parallelism lie inside tensor parallelism: the
    weights are shared by tensor x pipeline accelerators either way, unless experts are replicated too.
    Without a flag SGLang chooses the memory fraction by itself.
    """
    line = read_command_line(view)
    tensor, pipeline = kit.size(line, "--tp-size"), kit.size(line, "--pp-size")
    is_replicated = line.has("--moe-dp-size") and kit.size(line, "--moe-dp-size") != 1
    is_shared = line.has("--dcp-size") and kit.size(line, "--dcp-size") != 1
    return kit.spread(
        line,
        shards=None if is_replicated else kit.product(tensor, pipeline),
        attention=_attention_shards(line, tensor),
        pipeline=pipeline,
        memory=kit.fraction(line, "--mem-fraction-static"),
        kv_bytes=None if is_shared else kit.cache_bytes(line),
    )


def _attention_shards(line: CommandLine, tensor: int | None) -> int | None:
    """The accelerators that share the attention heads; its replicas divide those of the tensors."""
    replicas = kit.size(line, "--attn-dp-size")
    if line.has("--enable-dp-attention"):
        replicas = kit.size(line, "--dp-size")
    inside = kit.product(replicas, kit.size(line, "--attn-cp-size"))
    if tensor is None or inside is None or tensor % inside:
        return None
    return tensor // inside
