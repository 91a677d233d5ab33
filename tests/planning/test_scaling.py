"""Replica bounds, autoscalers and budgets."""

from __future__ import annotations

from typing import Any

import pytest

from ome.planning.plan import Hold
from ome.snapshot import Config
from ome.testing.builders import deployment, plan_of, runtime, service

Json = dict[str, Any]
TRIGGERS = [{"type": "cron", "metadata": {"start": "0 6 * * *"}}]
DEFAULTS = Config(min_replicas=1, max_replicas={"engine": 3})


def scalers(rendered: Any) -> list[Json]:
    kinds = ("HorizontalPodAutoscaler", "ScaledObject")
    return [item for item in rendered.objects() if item["kind"] in kinds]


@pytest.mark.parametrize(
    ("config", "runtime_bounds", "own", "expected"),
    [
        (Config(), {}, {}, (1, 1)),
        (Config(), {}, {"minReplicas": 2}, (2, 2)),
        (Config(), {}, {"maxReplicas": 4}, (1, 4)),
        (DEFAULTS, {}, {}, (1, 3)),
        (DEFAULTS, {"minReplicas": 2}, {}, (2, 3)),
        (DEFAULTS, {"minReplicas": 5}, {}, (5, 5)),
        (DEFAULTS, {"maxReplicas": 8}, {"minReplicas": 2}, (2, 8)),
        (DEFAULTS, {"maxReplicas": 8}, {"maxReplicas": 0}, (1, 8)),
    ],
)
def test_each_bound_comes_from_service_runtime_and_configuration(
    config: Config, runtime_bounds: Json, own: Json, expected: tuple[int, int]
) -> None:
    engine = {"runner": {"name": "ome-container", "image": "x"}, **runtime_bounds}
    (hpa,) = scalers(plan_of(runtime(engine), service(engine=own), config=config))
    assert (hpa["spec"]["minReplicas"], hpa["spec"]["maxReplicas"]) == expected


@pytest.mark.parametrize(
    ("annotations", "kind", "target"),
    [
        ({}, "HorizontalPodAutoscaler", 80),
        ({"ome.io/autoscalerClass": "hpa"}, "HorizontalPodAutoscaler", 80),
        ({"ome.io/targetUtilizationPercentage": "60"}, "HorizontalPodAutoscaler", 60),
        ({"ome.io/autoscalerClass": "external"}, None, None),
    ],
)
def test_legacy_annotations(
    annotations: dict[str, str], kind: str | None, target: int | None
) -> None:
    rendered = plan_of(runtime(), service(metadata={"annotations": annotations}))
    found = scalers(rendered)
    assert [item["kind"] for item in found] == ([kind] if kind else [])
    if found:
        resource = found[0]["spec"]["metrics"][0]["resource"]
        assert resource == {
            "name": "cpu",
            "target": {"type": "Utilization", "averageUtilization": target},
        }
    assert "replicas" not in deployment(rendered)["spec"]


@pytest.mark.parametrize(
    ("annotations", "message"),
    [
        ({"ome.io/autoscalerClass": "keda"}, "KEDA autoscaler requires at least one trigger"),
        ({"ome.io/autoscalerClass": "vpa"}, "[vpa] is not a supported autoscaler class type"),
        (
            {"ome.io/targetUtilizationPercentage": "0"},
            "the target utilization percentage should be a [1-100] integer",
        ),
        (
            {"ome.io/targetUtilizationPercentage": "٥"},
            "the target utilization percentage should be a [1-100] integer",
        ),
    ],
)
def test_legacy_annotations_that_are_refused(annotations: dict[str, str], message: str) -> None:
    action = plan_of(runtime(), service(metadata={"annotations": annotations})).actions["engine"]
    assert isinstance(action, Hold)
    assert action.problems[0].message == message


def test_a_block_beats_the_legacy_annotation() -> None:
    annotated = service(
        engine={"autoscaler": {"class": "None"}, "minReplicas": 2},
        metadata={"annotations": {"ome.io/autoscalerClass": "keda"}},
    )
    rendered = plan_of(runtime(), annotated)
    assert not scalers(rendered)
    assert deployment(rendered)["spec"]["replicas"] == 2


def test_hpa_settings_are_passed_on() -> None:
    metrics = [{"type": "Pods", "pods": {"metric": {"name": "q"}}}]
    behavior = {"scaleDown": {"stabilizationWindowSeconds": 60}}
    block = {"class": "HPA", "hpa": {"metrics": metrics, "behavior": behavior}}
    (hpa,) = scalers(plan_of(runtime(), service(engine={"autoscaler": block})))
    assert (hpa["spec"]["metrics"], hpa["spec"]["behavior"]) == (metrics, behavior)


def test_keda_settings_are_passed_on() -> None:
    keda = {
        "triggers": TRIGGERS,
        "pollingInterval": 15,
        "cooldownPeriod": 30,
        "idleReplicaCount": 0,
        "fallback": {"failureThreshold": 3, "replicas": 1},
        "advanced": {"restoreToOriginalReplicaCount": True},
    }
    block = {"class": "KEDA", "keda": keda}
    own = {"autoscaler": block, "minReplicas": 1, "maxReplicas": 2}
    (scaled,) = scalers(plan_of(runtime(), service("c" * 50, engine=own)))
    assert scaled["metadata"]["name"] == "scaledobject-" + ("c" * 43 + "-engine")
    assert scaled["spec"] == {
        "scaleTargetRef": {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "name": "c" * 50 + "-engine",
        },
        "minReplicaCount": 1,
        "maxReplicaCount": 2,
        **keda,
    }
    bare = {"autoscaler": {"class": "KEDA", "keda": {"triggers": TRIGGERS}}}
    (scaled,) = scalers(plan_of(runtime(), service(engine=bare)))
    assert set(scaled["spec"]) == {"scaleTargetRef", "triggers"}


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ({"minReplicas": -1}, "spec.engine.minReplicas must be >= 0"),
        (
            {"minReplicas": 2**31, "maxReplicas": 2**31},
            "spec.engine.minReplicas must be at most 2147483647: Kubernetes counts replicas in 32 bits",
        ),
        (
            {"maxReplicas": 9999999999},
            "spec.engine.maxReplicas must be at most 2147483647: Kubernetes counts replicas in 32 bits",
        ),
        ({"maxReplicas": -1}, "spec.engine.maxReplicas must be >= 1"),
    ],
)
def test_bounds_that_are_none(own: Json, message: str) -> None:
    action = plan_of(runtime(), service(engine=own)).actions["engine"]
    assert isinstance(action, Hold)
    assert action.problems[0].message == message


@pytest.mark.parametrize("value", [0, 3, "0%", "100%", "25%"])
def test_budget_bounds(value: Any) -> None:
    rendered = plan_of(runtime(), service(engine={"maxUnavailable": value}))
    (budget,) = (item for item in rendered.objects() if item["kind"] == "PodDisruptionBudget")
    assert budget["spec"] == {
        "maxUnavailable": value,
        "selector": {"matchLabels": {"app": "chat-engine"}},
    }


@pytest.mark.parametrize("value", [-1, "101%", "half", "-5%"])
def test_budget_bounds_that_are_none(value: Any) -> None:
    action = plan_of(runtime(), service(engine={"maxUnavailable": value})).actions["engine"]
    assert isinstance(action, Hold)
    assert action.problems[0].code == "PdbValue"
