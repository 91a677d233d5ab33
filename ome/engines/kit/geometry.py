"""How a launch spreads a model over accelerators, from its flags; what they don't tell stays unknown."""

from __future__ import annotations

from typing import Final

from ome.engines.kit.commandline import CommandLine
from ome.engines.types import Geometry

__all__ = ["cache_bytes", "fraction", "product", "size", "spread"]

# `auto` is the model's own type, which has 16 bits. Formats that store scales in between aren't here.
_BYTES: Final = {
    "auto": 2,
    "bf16": 2,
    "bfloat16": 2,
    "float16": 2,
    "fp8": 1,
    "fp8_e4m3": 1,
    "fp8_e5m2": 1,
}


def size(line: CommandLine, name: str, default: int = 1) -> int | None:
    """A size of at least 1 that an option is given, its default, or None if it can't be known."""
    found = line.number(name, default)
    return found if found is None or found > 0 else None


def product(*sizes: int | None) -> int | None:
    """The product of sizes, None if one of them isn't known."""
    found = 1
    for each in sizes:
        if each is None:
            return None
        found *= each
    return found


def fraction(line: CommandLine, name: str) -> float | None:
    """The part of something that an option is given, above 0 and up to 1; None without one."""
    try:
        given = float(line.value(name))
    except ValueError:
        return None
    return given if 0 < given <= 1 else None


def cache_bytes(line: CommandLine, name: str = "--kv-cache-dtype") -> float | None:
    """The bytes of a number in the KV cache, as an option names its type; None when it isn't known."""
    if line.last(name) is None:
        return _BYTES["auto"] if line.is_whole else None
    return _BYTES.get(line.value(name))


def spread(
    line: CommandLine,
    *,
    shards: int | None,
    attention: int | None,
    pipeline: int | None,
    memory: float | None,
    kv_bytes: float | None,
    quantization: str = "--quantization",
) -> Geometry | None:
    """The geometry of a launch; None when its flags can't be read or another parser reads them.

    `quantization` is the flag that says how weights are stored; without it the model's files decide.
    """
    if not line.is_readable or not line.is_tabled:
        return None
    value: str | None = line.value(quantization)
    if "$" in (value or "") or (line.last(quantization) is None and not line.is_whole):
        value = None
    return Geometry(shards, attention, pipeline, memory, value, kv_bytes)
