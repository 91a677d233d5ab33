"""Reading sizes, fractions and types of numbers from a command line, for an engine's geometry."""

from __future__ import annotations

from typing import Final

from ome.engines.kit.commandline import CommandLine

__all__ = ["fraction", "kv_bytes", "size"]

_KV_BYTES: Final = {
    "": 2,
    "auto": 2,
    "bf16": 2,
    "bfloat16": 2,
    "float16": 2,
    "fp8": 1,
    "fp8_e4m3": 1,
    "fp8_e5m2": 1,
}


def size(line: CommandLine, name: str, default: int = 1) -> int | None:
    """A size of at least 1 that an option is given, or its default; None when it can't be known."""
    found = line.number(name, default)
    return found if found is None or found > 0 else None


def fraction(line: CommandLine, name: str) -> float | None:
    """A part above 0 and up to 1 that an option is given; None without one, and for anything else."""
    try:
        given = float(line.value(name))
    except ValueError:
        return None
    return given if 0 < given <= 1 else None


def kv_bytes(line: CommandLine, name: str = "--kv-cache-dtype") -> float | None:
    """The bytes of a number in the KV cache, by its type; None for types that hold scales beside it."""
    return _KV_BYTES.get(line.value(name))
