"""A service for every runtime of the public catalog: it renders, and Kubernetes would take it."""

from __future__ import annotations

import copy
import json
from collections import Counter
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest

from ome.api import ApiObject, ClusterServingRuntime
from ome.engines.engines import Engines
from ome.planning.plan import Plan
from ome.planning.planner import plan
from ome.snapshot import Snapshot
from ome.sources import load
from ome.testing.catalog import model_for, service_for, winners

# Runtimes that Kubernetes would refuse as a Deployment, reviewed: the leader of this one mounts volumes
# that only its worker declares. RDMA injection would add them to a pod, but a Deployment whose template
# lacks them is refused before there is a pod.
FAULTS = {"srt-deepseek-rdma": ["VolumeMissing", "VolumeMissing"]}
KUBERNETES = "1.34.0"
WINNERS = Path(__file__).parent / "data/catalog-winners.json"


@pytest.fixture(scope="session")
def runtimes(catalog_texts: list[tuple[str, bytes]]) -> list[ApiObject]:
    loaded = load(catalog_texts)
    assert sum(warning.code == "DuplicateObject" for warning in loaded.warnings) == 4
    found = [item for item in loaded.objects if isinstance(item, ClusterServingRuntime)]
    assert len(found) == 201
    return found


@pytest.fixture(scope="session")
def plans(runtimes: list[ApiObject]) -> dict[str, Plan]:
    made = {}
    for runtime in runtimes:
        model = model_for(runtime)
        service: Any = service_for(runtime, model)
        made[runtime.name] = plan(Snapshot.of([runtime, model, service]), service, Engines())
    return made


def test_every_runtime_renders(plans: dict[str, Plan]) -> None:
    refused = {
        name: [problem.code for _, problem in each.refusals()]
        for name, each in plans.items()
        if list(each.refusals())
    }
    assert refused == FAULTS


def test_the_winners_of_the_catalog_are_the_reviewed_ones(
    catalog_texts: list[tuple[str, bytes]],
) -> None:
    reviewed = json.loads(WINNERS.read_text())["models"]
    assert winners(load(catalog_texts).objects) == reviewed
    outcomes = Counter(item.get("refusal") or item["tieBreak"] for item in reviewed.values())
    assert sum(outcomes.values()) == 205


def test_every_object_validates_against_kubernetes_own_schema(plans: dict[str, Plan]) -> None:
    checked = 0
    for each in plans.values():
        for item in each.objects():
            if item["kind"] != "PodMonitor":
                kubernetes_validate.validate(item, KUBERNETES, strict=True)
                checked += 1
    assert checked > 1500


def test_nothing_of_the_input_is_changed_by_planning(runtimes: list[ApiObject]) -> None:
    before = copy.deepcopy([runtime.raw for runtime in runtimes])
    for runtime in runtimes:
        model = model_for(runtime)
        service: Any = service_for(runtime, model)
        snapshot = Snapshot.of([runtime, model, service])
        once, twice = (plan(snapshot, service, Engines()).as_json() for _ in range(2))
        assert json.dumps(once) == json.dumps(twice)
    assert [runtime.raw for runtime in runtimes] == before
