"""The order of runtimes, from the documented tables."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from ome.api import ObjectRef
from ome.scoring.ranking import TieBreak, rank, tie_break
from ome.scoring.sizes import range_distance
from ome.scoring.verdict import Verdict

CASES = json.loads((Path(__file__).parents[1] / "vectors/ranking.json").read_text())["cases"]


def verdict(item: dict[str, Any], size: str | None = None) -> Verdict:
    local = item["scope"] == "Namespaced"
    ref = ObjectRef(
        "ServingRuntime" if local else "ClusterServingRuntime",
        "demo" if local else "",
        item["name"],
    )
    return Verdict(ref, None, 0, item["score"], range_distance(size, item["range"]), eligible=True)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["title"])
def test_documented_orders(case: dict[str, Any]) -> None:
    verdicts = [verdict(item, case["modelParameterSize"]) for item in case["runtimes"]]
    for order in itertools.permutations(verdicts):
        assert [each.runtime.name for each in rank(order)] == case["order"]
    for name, distance in case.get("distance", {}).items():
        assert [each.distance for each in verdicts if each.runtime.name == name] == [distance]


def test_what_decided() -> None:
    def made(name: str, scope: str = "Cluster", score: int = 2, low: str | None = None) -> Verdict:
        sizes = {"min": low} if low else None
        return verdict({"name": name, "scope": scope, "score": score, "range": sizes}, "4B")

    assert tie_break(made("a"), None) is TieBreak.ONLY
    assert tie_break(made("z", "Namespaced", 1), made("a", score=9)) is TieBreak.SCOPE
    assert tie_break(made("z", score=3), made("a")) is TieBreak.SCORE
    assert tie_break(made("z", low="3B"), made("a", low="1B")) is TieBreak.DISTANCE
    assert tie_break(made("a"), made("z")) is TieBreak.NAME


def test_what_can_not_be_chosen_is_not_ranked() -> None:
    ref = ObjectRef("ClusterServingRuntime", "", "a")
    assert (
        rank([Verdict(ref, None, 0, 0, eligible=True), Verdict(ref, None, 0, 2, eligible=False)])
        == []
    )
