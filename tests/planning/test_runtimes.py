"""What OME reports of a runtime's inheritance."""

import json
from pathlib import Path
from typing import Any

import pytest

from ome.api import ObjectRef, parse
from ome.engines.engines import Engines
from ome.planning.runtimes import check_runtime, report_runtime
from ome.snapshot import Snapshot
from ome.sources import InstalledPresets
from ome.testing.builders import obj

CASES = json.loads((Path(__file__).parents[1] / "vectors" / "inheritance-errors.json").read_text())[
    "cases"
]


@pytest.mark.parametrize(
    "case", [c for c in CASES if "runtimes" in c], ids=lambda case: case["title"]
)
def test_inheritance_is_reported(case: dict[str, Any]) -> None:
    runtimes: list[Any] = [
        obj(
            item["kind"],
            item["name"],
            {},
            namespace=item.get("namespace", ""),
            generation=3,
            annotations={"ome.io/inherit-from": item["inheritFrom"]} if item["inheritFrom"] else {},
        )
        for item in case["runtimes"]
    ]
    report = report_runtime(Snapshot.of(runtimes), runtimes[case["head"]])
    (condition,) = report.status["conditions"]
    if case["error"] is None:
        assert report.status["inheritanceChain"] == case["chain"]
        assert (condition["status"], condition["reason"]) == ("True", "Resolved")
        assert report.event is None
    else:
        assert "inheritanceChain" not in report.status
        assert report.event is not None
        assert (report.event.type, report.event.reason) == ("Warning", case["reason"])
        assert report.event.message == case["error"]
        assert condition == {
            "type": "InheritanceReady",
            "status": "False",
            "reason": case["reason"],
            "message": case["error"],
            "observedGeneration": 3,
        }


def test_a_broken_chain_leaves_the_last_good_one() -> None:
    raw = {
        "apiVersion": "ome.io/v1beta1",
        "kind": "ClusterServingRuntime",
        "metadata": {"name": "child", "annotations": {"ome.io/inherit-from": "gone"}},
        "spec": {},
        "status": {"inheritanceChain": ["gone", "child"]},
    }
    child: Any = parse(raw)
    report = report_runtime(Snapshot.of([child]), child)
    assert report.status["inheritanceChain"] == ["gone", "child"]
    assert report.runtime == ObjectRef("ClusterServingRuntime", "", "child")


def test_a_preset_that_is_unknown_is_no_fault_of_the_chain() -> None:
    annotations = {"ome.io/engine": "nope", "ome.io/inherit-from": "base"}
    parent: Any = obj("ClusterServingRuntime", "base", {})
    child: Any = obj("ClusterServingRuntime", "child", {}, annotations=annotations)
    presets = InstalledPresets(Engines())
    snapshot = Snapshot.of([parent, child], presets=presets)
    report = report_runtime(snapshot, child)
    text = 'unknown ome.io/engine value "nope" (known: none installed)'
    assert [(c["reason"], c["message"]) for c in report.status["conditions"]] == [
        ("ResolverError", text)
    ]
    assert list(check_runtime(snapshot, child)) == []
    assert [problem.message for problem in snapshot.preset_problems] == [text]
