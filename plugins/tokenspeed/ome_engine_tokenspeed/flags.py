"""TokenSpeed's command line as data: every flag of the releases in `flags.json`, and how each reads it.

`flags.json` is derived from the released packages by `tools/derive_flags.py`: the engine's flags, those
of `serve` itself, and those of the gateway, to which `serve` passes on what the engine doesn't know.
`hints.json` is written by hand. Flags are read as they are registered: no beginnings, no underscores,
two dashes.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Final

from ome.engines.kit import FlagTable, ParserRules, read_table

__all__ = ["RULES", "TABLE"]

RULES: Final = ParserRules(prefixes=False)


def _load() -> FlagTable:
    """The table. Read at import, so that the hooks themselves do no I/O."""
    texts = [
        files("ome_engine_tokenspeed").joinpath(name).read_text("utf-8")
        for name in ("flags.json", "hints.json")
    ]
    return read_table(texts[0], RULES, texts[1])


TABLE: Final = _load()
