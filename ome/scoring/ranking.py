"""The order of runtimes that fit, and what decided between two of them.

ServingRuntimes come before ClusterServingRuntimes whatever the score; then the higher score; then,
only for a model with a size, the closer size range; then the name. Source: OME "Runtime selection
scoring" document (v1.3).
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from enum import StrEnum

from ome.scoring.verdict import Verdict

__all__ = ["TieBreak", "rank", "rank_key", "tie_break"]


class TieBreak(StrEnum):
    """What put a runtime before the next one."""

    ONLY = "OnlyCandidate"
    SCOPE = "Namespace"
    SCORE = "Score"
    DISTANCE = "SizeDistance"
    NAME = "Name"


def rank_key(verdict: Verdict) -> tuple[bool, int, Decimal, str]:
    """Sorts the best runtime first; a model without a size has distance 0 everywhere."""
    return not verdict.runtime.namespace, -verdict.score, verdict.distance, verdict.runtime.name


def rank(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """The runtimes that automatic selection can choose, best first."""
    return sorted((each for each in verdicts if each.selectable), key=rank_key)


def tie_break(better: Verdict, worse: Verdict | None) -> TieBreak:
    """Which rule put `better` before `worse`."""
    if worse is None:
        return TieBreak.ONLY
    steps = (TieBreak.SCOPE, TieBreak.SCORE, TieBreak.DISTANCE, TieBreak.NAME)
    pairs = zip(steps, rank_key(better), rank_key(worse), strict=True)
    return next((step for step, ours, theirs in pairs if ours != theirs), TieBreak.NAME)
