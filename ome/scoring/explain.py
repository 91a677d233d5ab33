"""What `runtime explain` says of each runtime: rows in rank order, then those that don't qualify.

Source: OME "kubectl ome runtime" reference (v1.3), "explain".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ome.api import ObjectRef
from ome.scoring.ranking import TieBreak, rank, tie_break
from ome.scoring.verdict import Verdict

__all__ = ["Row", "obstacle", "rows"]

Json = Mapping[str, Any]

NO_AUTO_SELECT: Final = (
    "supports the model but has no supportedModelFormats[].autoSelect=true entry, so automatic selection "
    "skips it (pin it explicitly via spec.runtime.name instead)"
)
ENTRY_NOT_AUTO_SELECT: Final = (
    "matching format {format} is not autoSelect-enabled (a different supportedModelFormats entry on this "
    "runtime has autoSelect=true, but not the one that matches this model)"
)
NO_SCORE: Final = "auto-select score is 0"


@dataclass(frozen=True, slots=True)
class Row:
    """One runtime: its verdict, and for those that qualify their rank and what put them there."""

    verdict: Verdict
    reason: str = ""
    priority: int | None = None
    weight: int | None = None
    rank: int | None = None
    tie_break: TieBreak | None = None

    @property
    def compatible(self) -> bool:
        """Whether automatic selection can choose the runtime."""
        return self.rank is not None


def rows(
    verdicts: Iterable[Verdict], model: Json, spec_of: Callable[[ObjectRef], Json]
) -> list[Row]:
    """The rows of a report: qualifying runtimes best first, then the others, ServingRuntimes first."""
    judged = list(verdicts)
    ranked = rank(judged)
    found = []
    for at, verdict in enumerate(ranked):
        following = ranked[at + 1] if at + 1 < len(ranked) else None
        entry = _entry(spec_of(verdict.runtime), verdict)
        priority = entry.get("priority")
        priority = 1 if priority is None else priority
        decided = tie_break(verdict, following)
        found.append(Row(verdict, "", priority, _weight(entry) * priority, at + 1, decided))
    others = [each for each in judged if not each.selectable]
    for verdict in sorted(others, key=lambda v: (not v.runtime.namespace, v.runtime.name)):
        found.append(Row(verdict, obstacle(verdict, model, spec_of(verdict.runtime))))
    return found


def _entry(spec: Json, verdict: Verdict) -> Json:
    entries = spec.get("supportedModelFormats") or ()
    found: Json = entries[verdict.entry] if verdict.entry is not None else {}
    return found


def _weight(entry: Json) -> int:
    """The positive weights added up: not what the score counts (a documented oddity)."""
    total = 0
    for part in ("modelFormat", "modelFramework"):
        weight = (entry.get(part) or {}).get("weight")
        total += max(0, 1 if weight is None else weight)
    return total


def obstacle(verdict: Verdict, model: Json, spec: Json) -> str:
    """Why automatic selection can't choose a runtime."""
    if verdict.reason is not None:
        return verdict.reason.message
    if not verdict.eligible:
        return NO_AUTO_SELECT
    if _entry(spec, verdict).get("autoSelect") is not True:
        name = (model.get("modelFormat") or {}).get("name", "")
        return ENTRY_NOT_AUTO_SELECT.format(format=name)
    return NO_SCORE
