"""The entry of a runtime whose settings count for a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ome.scoring.entries import best_entry, entry_score

SCORING = json.loads((Path(__file__).parents[1] / "vectors/scoring.json").read_text())["cases"]
MODEL = {
    "modelFormat": {"name": "safetensors", "version": "1.0.0"},
    "modelFramework": {"name": "transformers", "version": "4.50.0"},
}


def entry(**changes: Any) -> dict[str, Any]:
    built: dict[str, Any] = {key: dict(value) for key, value in MODEL.items()}
    for key, value in changes.items():
        if key in ("formatWeight", "frameworkWeight"):
            part = "modelFormat" if key == "formatWeight" else "modelFramework"
            built[part]["weight"] = value
        else:
            built[key] = value
    return built


@pytest.mark.parametrize("case", SCORING, ids=lambda case: case["where"])
def test_documented_scores(case: dict[str, Any]) -> None:
    scores = [
        entry_score(entry(**item), MODEL)
        for item in case["entries"]
        if item.get("autoSelect") is not False
    ]
    assert max([0, *scores]) == case["score"]


@pytest.mark.parametrize(
    ("changes", "score"),
    [
        ({"modelFormat": {"name": "gguf"}}, 0),
        ({"modelFramework": {"name": "transformers", "version": "4.51.0"}}, 0),
        ({"modelFramework": {"name": "transformers"}}, 2),
        ({"modelFramework": None}, 0),
        ({"modelArchitecture": "Other"}, 2),
    ],
)
def test_names_and_versions_decide(changes: dict[str, Any], score: int) -> None:
    assert entry_score(entry(**changes), MODEL) == score


def test_the_first_of_equals_wins_and_priority_beats_it() -> None:
    first, second = entry(priority=2), entry(priority=2)
    third = entry(priority=3)
    spec = {"supportedModelFormats": [first, second]}
    assert best_entry(spec, MODEL, auto_selected=False) is first
    spec = {"supportedModelFormats": [first, third]}
    assert best_entry(spec, MODEL, auto_selected=False) is third
    assert best_entry({}, MODEL, auto_selected=False) is None


def test_a_chosen_runtime_counts_only_entries_that_it_could_be_chosen_by() -> None:
    off, on = entry(priority=9, autoSelect=False), entry(autoSelect=True)
    spec = {"supportedModelFormats": [off, on]}
    assert best_entry(spec, MODEL, auto_selected=True) is on
    assert best_entry(spec, MODEL, auto_selected=False) is off
