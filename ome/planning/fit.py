"""Does a model fit its accelerators: the weights on each, and what is left for the KV cache.

Plain arithmetic on what the model's and the class's manifests and the flags say; docs/fit.md has the
formula, its sources and its limits. It is advice, and never holds a service back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from ome.api.quantities import InvalidQuantity, parse_quantity
from ome.engines.types import Geometry
from ome.scoring.sizes import parse_size

__all__ = ["Fit", "fit", "uneven_heads", "weight_bytes"]

Json = Mapping[str, Any]

GIB: Final = 1 << 30
# The memory that engines take for weights and KV cache when no flag says so.
ASSUMED_FRACTION: Final = 0.9
_FULL: Final = 16.0
# Bits of a weight with its scales: mxfp4 has one 8-bit scale for 32 weights, nvfp4 one for 16, int4
# (AWQ, GPTQ) a 16-bit scale and a 4-bit zero for 128.
_BITS: Final[Mapping[str, float]] = {
    "": _FULL,
    "fp8": 8.0,
    "fbgemm_fp8": 8.0,
    "w8a8_fp8": 8.0,
    "w8a8_int8": 8.0,
    "int8": 8.0,
    "int4": 4.16,
    "awq": 4.16,
    "gptq": 4.16,
    "nvfp4": 4.5,
    "mxfp4": 4.25,
}


@dataclass(frozen=True, slots=True)
class Fit:
    """Bytes on one accelerator: its `memory`, the `budget` of it for weights and KV cache, the `weights`.

    `parameters` and `bits` are those of the model, `shards` the accelerators that share its weights;
    `token_bytes` is what the KV cache takes for a token, None when the model doesn't say.
    """

    parameters: float
    bits: float
    shards: int
    memory: float
    fraction: float
    is_assumed: bool
    weights: float
    token_bytes: float | None

    @property
    def budget(self) -> float:
        """What weights and KV cache may take together."""
        return self.memory * self.fraction

    @property
    def left(self) -> float:
        """What the weights leave for the KV cache; negative when they don't fit."""
        return self.budget - self.weights

    @property
    def tokens(self) -> int | None:
        """How many tokens the KV cache holds then, all requests together."""
        return int(max(self.left, 0) // self.token_bytes) if self.token_bytes else None

    @property
    def arithmetic(self) -> str:
        """The calculation in one line."""
        share = f"{self.fraction:.2f}" + (" (assumed)" if self.is_assumed else "")
        text = (
            f"{self.parameters / 1e9:.4g}B parameters x {self.bits:g} bits over {self.shards} "
            f"accelerator{'' if self.shards == 1 else 's'} = {_gib(self.weights)} of weights each; "
            f"{_gib(self.memory)} x {share} = {_gib(self.budget)}"
        )
        if self.left <= 0:
            return f"{text}, {_gib(-self.left)} too little"
        text += f", {_gib(self.left)} left for the KV cache"
        return text if self.tokens is None else f"{text}, about {self.tokens:,} tokens"

    def as_json(self) -> dict[str, Any]:
        """The figures as JSON data, in whole bytes."""
        data: dict[str, Any] = {
            "weightsPerAccelerator": int(self.weights),
            "budgetPerAccelerator": int(self.budget),
            "leftForCache": int(self.left),
            "arithmetic": self.arithmetic,
        }
        return data if self.tokens is None else {**data, "cacheTokens": self.tokens}


def _gib(value: float) -> str:
    return f"{value / GIB:.1f} GiB"


def fit(model: Json, geometry: Geometry, memory: object) -> Fit | None:
    """How a model fits accelerators of `memory` (a quantity); None when what it takes can't be known."""
    quantization = geometry.quantization
    weights = None if quantization is None else weight_bytes(model, quantization)
    try:
        amount = parse_quantity(memory)
    except InvalidQuantity:
        return None
    if weights is None or geometry.shards is None or amount <= 0:
        return None
    fraction = geometry.memory_fraction
    quantization = quantization or str(model.get("quantization") or "")
    return Fit(
        parameters=float(parse_size(str(model.get("modelParameterSize")))),
        bits=_BITS[quantization.lower()],
        shards=geometry.shards,
        memory=float(amount),
        fraction=ASSUMED_FRACTION if fraction is None else fraction,
        is_assumed=fraction is None,
        weights=weights / geometry.shards,
        token_bytes=_token_bytes(model, geometry),
    )


def weight_bytes(model: Json, quantization: str = "") -> float | None:
    """What a model's weights take, in bytes; None when its size or quantization can't be read.

    `quantization` is what the flags say; without it the model's own counts. Embeddings are never
    quantized: where the model's configuration tells their size they count in full.
    """
    parameters = float(parse_size(str(model.get("modelParameterSize") or "")))
    bits = _BITS.get((quantization or str(model.get("quantization") or "")).lower())
    if not parameters or bits is None:
        return None
    embedded = min(_embedded(model), parameters) if bits < _FULL else 0
    return ((parameters - embedded) * bits + embedded * _FULL) / 8


def _embedded(model: Json) -> float:
    """The parameters of the embedding and of the output layer, as far as the model says."""
    config = _configuration(model)
    one = _number(config, "vocab_size") * _number(config, "hidden_size")
    return one if config.get("tie_word_embeddings") is True else 2 * one


def _token_bytes(model: Json, geometry: Geometry) -> float | None:
    """What one token takes in one accelerator's KV cache."""
    config = _configuration(model)
    layers = _number(config, "num_hidden_layers")
    if not layers or geometry.kv_bytes is None or geometry.pipeline is None:
        return None
    each = layers / geometry.pipeline * geometry.kv_bytes
    latent = _number(config, "kv_lora_rank")
    if latent:  # multi-head latent attention keeps one vector, the same on every accelerator
        return each * (latent + _number(config, "qk_rope_head_dim"))
    heads = _number(config, "num_attention_heads")
    shared = _number(config, "num_key_value_heads") or heads
    width = _number(config, "head_dim") or (_number(config, "hidden_size") / heads if heads else 0)
    if not shared or not width or geometry.attention_shards is None:
        return None
    return each * 2 * max(shared / geometry.attention_shards, 1) * width


def uneven_heads(model: Json, geometry: Geometry) -> tuple[int, int] | None:
    """The attention heads and the accelerators that can't share them evenly, else None."""
    heads = int(_number(_configuration(model), "num_attention_heads"))
    parts = geometry.attention_shards
    return (heads, parts) if heads and parts and heads % parts else None


def _configuration(model: Json) -> Json:
    """The model's own configuration; of a multimodal one the part for text."""
    found = model.get("modelConfiguration")
    if not isinstance(found, Mapping):
        return {}
    text = found.get("text_config")
    return text if isinstance(text, Mapping) else found


def _number(config: Json, name: str) -> float:
    value = config.get(name)
    is_number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    return float(value) if is_number and 0 < value < 1e12 else 0.0  # type: ignore[arg-type,operator]
