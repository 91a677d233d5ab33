"""SGLang's command line as data: which flags take no value, or several.

Read from SGLang 0.5.5 to 0.5.23 (`sglang/srt/server_args.py`, `sglang/srt/arg_groups/`). Flags that
stand in neither list take one value. SGLang's parser is Python's argparse: unique prefixes count, the
last of repeated flags wins, underscores don't stand for dashes.
"""

from __future__ import annotations

from typing import Final

from ome.engines import Arity, Dialect

__all__ = ["DIALECT"]
