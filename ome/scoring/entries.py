"""The score of one `supportedModelFormats` entry for a model, and the entry that serves a model.

Source: OME "Runtime selection scoring" and "Serving runtimes" documents (v1.3).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ome.scoring.versions import versions_match

__all__ = ["best_entry", "entry_score", "full_score"]

Json = Mapping[str, Any]

# A weight of 0 counts as these (a documented oddity); an unset one has the API's default.
_ZERO_WEIGHTS: Final = {"modelFormat": 10, "modelFramework": 5}
_DEFAULT_WEIGHT: Final = 1


def entry_score(entry: Json, model: Json) -> int:
    """(format weight + framework weight) × priority, or 0 when names or versions differ.

    A version that only one side sets passes. Architecture, quantization and pipeline don't count.
    """
    for part in _ZERO_WEIGHTS:
        wanted, offered = entry.get(part) or {}, model.get(part) or {}
        if not wanted.get("name") or wanted.get("name") != offered.get("name"):
            return 0
        if not _versions_agree(wanted, offered):
            return 0
    return full_score(entry)


def full_score(entry: Json) -> int:
    """The score of an entry for a model whose names and versions it has."""
    total = 0
    for part, zero_weight in _ZERO_WEIGHTS.items():
        weight = (entry.get(part) or {}).get("weight")
        total += _DEFAULT_WEIGHT if weight is None else weight or zero_weight
    priority = entry.get("priority")
    return total * (1 if priority is None else priority)


def _versions_agree(wanted: Json, offered: Json) -> bool:
    """Whether versions set on both sides match; one that only one side sets passes."""
    ours, theirs = wanted.get("version"), offered.get("version")
    if ours is None or theirs is None:
        return True
    return versions_match(ours, wanted.get("operator"), theirs)


def best_entry(runtime_spec: Json, model: Json, *, auto_selected: bool) -> Json | None:
    """The entry whose `acceleratorConfig` counts for a model: highest score, the first of equals.

    Entries without `autoSelect: true` are passed over when OME chose the runtime itself.
    """
    best: Json | None = None
    best_score = 0
    for entry in runtime_spec.get("supportedModelFormats") or ():
        if auto_selected and entry.get("autoSelect") is not True:
            continue
        score = entry_score(entry, model)
        if score > best_score:
            best, best_score = entry, score
    return best
