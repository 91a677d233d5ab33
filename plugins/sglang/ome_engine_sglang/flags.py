"""SGLang's command line as data: every flag of the releases in `flags.json`, and how each reads it.

`flags.json` is derived from the released wheels by `tools/derive_flags.py`, `hints.json` is written by
hand: `short` are abbreviations that people take for real flags (others are left alone: they mean one
option today), `unparsed` what `sglang serve` takes out before it parses. SGLang's parser is Python's
argparse: a prefix that fits one option counts as that option, the last of repeated flags wins,
underscores don't stand for dashes, and there are no long options with a single dash.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Final

from ome.engines.kit import AmbiguousFlag, FlagTable, order_of, read_table

__all__ = [
    "CONFLICTING",
    "RELEASES",
    "TABLE",
    "AmbiguousFlag",
    "dialect",
    "order_of",
    "releases_for",
]


def _load() -> FlagTable:
    """The table. Read at import, so that the hooks themselves do no I/O."""
    texts = [
        files("ome_engine_sglang").joinpath(name).read_text("utf-8")
        for name in ("flags.json", "hints.json")
    ]
    return read_table(texts[0], hints=texts[1])


TABLE: Final = _load()
RELEASES: Final = TABLE.releases
CONFLICTING: Final = TABLE.conflicting
"""Flags that take another number of values in one release than in another."""

releases_for = TABLE.releases_for
dialect = TABLE.dialect
