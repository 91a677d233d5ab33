"""vLLM's command line as data: every flag of the releases in `flags.json`, and how each reads it.

`flags.json` is derived from the released packages by `tools/derive_flags.py`: the options of
`vllm serve`, which the module forms share. `hints.json` is written by hand. vLLM's parser is Python's
argparse with more on top: underscores stand for dashes, `--flag.key` sets a key of a JSON value, and
some flags have a short form of one dash and several letters, which takes no value in the same word.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Final

from ome.engines import Dialect
from ome.engines.kit import FlagTable, ParserRules, read_table

__all__ = ["RULES", "TABLE"]

_DOCUMENTED: Final = Dialect()
RULES: Final = ParserRules(
    prefixes=True,
    underscores=True,
    glued=True,
    dotted=True,
    tensor=(*_DOCUMENTED.tensor, "-tp"),
    pipeline=(*_DOCUMENTED.pipeline, "-pp"),
)


def _load() -> FlagTable:
    """The table. Read at import, so that the hooks themselves do no I/O."""
    texts = [
        files("ome_engine_vllm").joinpath(name).read_text("utf-8")
        for name in ("flags.json", "hints.json")
    ]
    return read_table(texts[0], RULES, texts[1])


TABLE: Final = _load()
