"""Printing: YAML and JSON that Kubernetes reads back as it was meant, and messages."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from typing import Any, Final

import yaml

from ome.api import Problem

__all__ = ["error", "to_json", "to_yaml", "warn"]

_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

# Plain words that some YAML reader takes for a boolean, null or a number: always quoted.
_NOT_A_STRING: Final = re.compile(
    r"|~|[yYnN]|(?i:null|true|false|yes|no|on|off|[-+]?\.inf|\.nan)"
    r"|[-+]?(0[xobXOB])?[0-9a-fA-F_.:]*[0-9][0-9a-fA-F_.:]*|[-+]?[0-9_.]+[eE][-+]?[0-9_]+",
    re.ASCII,
)


class _KubernetesDumper(_Dumper):  # type: ignore[misc]
    """Block style, keys in the given order, no aliases, doubtful strings quoted."""

    def ignore_aliases(self, data: Any) -> bool:
        """Shared parts are written out: an alias means nothing to a reader of manifests."""
        return True


def _represent_text(dumper: Any, text: str) -> Any:
    style = '"' if _NOT_A_STRING.fullmatch(text) else None
    if "\n" in text and not re.search(r"[ \t]\n|^\s|\r|\t", text):
        style = "|"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_KubernetesDumper.add_representer(str, _represent_text)


def to_yaml(documents: Iterable[Any]) -> str:
    """The documents as YAML, separated by `---`."""
    parts = [
        yaml.dump(
            document,
            Dumper=_KubernetesDumper,
            default_flow_style=False,
            sort_keys=False,
            allow_unicode=True,
            width=1_000_000,
        )
        for document in documents
    ]
    return "---\n".join(parts)


def to_json(value: Any) -> str:
    """A value as indented JSON with a newline."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def warn(problem: Problem) -> None:
    """An advisory on stderr."""
    print(f"Warning: {problem}", file=sys.stderr)


def error(message: object) -> None:
    """An error on stderr."""
    print(f"error: {message}", file=sys.stderr)
