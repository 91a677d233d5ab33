"""Named runtimes and models: where they are looked up, and every refusal's exact text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ome.api import ApiObject
from ome.planning.plan import Hold
from ome.resolution.resolve import find_runtime
from ome.snapshot import BrokenChain, Snapshot
from ome.testing.builders import deployment, model, obj, plan_of, runtime, service

VECTORS = Path(__file__).parents[1] / "vectors"
LOOKUPS = json.loads((VECTORS / "runtime-resolution.json").read_text())["cases"]
CHAINS = json.loads((VECTORS / "inheritance-errors.json").read_text())["cases"]


@pytest.mark.parametrize("case", [c for c in LOOKUPS if "resolved" in c], ids=lambda c: c["title"])
def test_documented_lookups(case: dict[str, Any]) -> None:
    local = [runtime(name=n, kind="ServingRuntime") for n in case["servingRuntimes"]]
    cluster = [runtime(name=n) for n in case["clusterServingRuntimes"]]
    namespace = case["namespace"]
    moved = [obj(i.KIND, i.name, i.raw["spec"], namespace=namespace) for i in local]
    found = find_runtime(Snapshot.of([*moved, *cluster]), namespace, case["name"], case["kind"])
    assert (str(found.ref) if found else None) == case["resolved"]
    if case["error"]:
        asked = service(
            namespace=namespace, runtime={"name": case["name"], "kind": case["kind"]}, engine={}
        )
        assert refusal(asked, *moved, *cluster) == case["error"]


def test_a_kind_that_no_api_server_lets_through_looks_in_the_namespace_first() -> None:
    objects = [runtime(kind="ServingRuntime"), runtime()]
    found = find_runtime(Snapshot.of(objects), "demo", "rt", "Odd")
    assert found is not None
    assert found.KIND == "ServingRuntime"


def refusal(*objects: ApiObject) -> str:
    """The message of the refusal of the one service, which holds everything."""
    rendered = plan_of(*objects)
    for action in rendered.actions.values():
        assert isinstance(action, Hold)
    assert not list(rendered.objects())
    ((_, problem),) = rendered.refusals()
    return problem.message


@pytest.mark.parametrize("case", [c for c in CHAINS if "runtimes" in c], ids=lambda c: c["title"])
def test_documented_chains(case: dict[str, Any]) -> None:
    runtimes = [
        obj(
            item["kind"],
            item["name"],
            {"schedulerName": item["name"]},
            namespace=item.get("namespace", ""),
            annotations={"ome.io/inherit-from": item["inheritFrom"]} if item["inheritFrom"] else {},
        )
        for item in case["runtimes"]
    ]
    head: Any = runtimes[case["head"]]
    effective = Snapshot.of(runtimes).lineage.effective(head.ref)
    if case["error"] is None:
        assert [item.name for item in effective.chain] == case["chain"]
        assert effective.spec["schedulerName"] == head.name
    else:
        assert effective.broken == BrokenChain(case["reason"], case["error"])


def test_a_named_runtime_renders_what_it_inherits() -> None:
    parent = runtime(
        {"runner": {"name": "ome-container", "image": "a:1", "command": ["serve"]}},
        name="profile",
        disabled=True,
    )
    child = runtime(
        {"runner": {"name": "ome-container", "image": "b:2"}},
        disabled=False,
        metadata={"annotations": {"ome.io/inherit-from": "profile"}},
    )
    rendered = plan_of(parent, child, service())
    (made,) = deployment(rendered)["spec"]["template"]["spec"]["containers"]
    assert (made["image"], made["command"]) == ("b:2", ["serve"])
    assert rendered.decision == {
        "selection": "Explicit",
        "runtime": "ClusterServingRuntime/rt",
        "chain": ["ClusterServingRuntime/profile", "ClusterServingRuntime/rt"],
    }


BROKEN = runtime(metadata={"annotations": {"ome.io/inherit-from": "gone"}})
CHAIN_ERROR = 'inherit-from parent "gone" not found (chain so far: [rt])'
NO_FORMAT = "invalid model specification: modelFormat.name: model format name is required"
SHARDED = "no model cache provider is configured for sharded model loading"


@pytest.mark.parametrize(
    ("objects", "message", "reason", "denial"),
    [
        (
            [service()],
            "runtime rt not found in namespace demo or at cluster scope",
            "RuntimeNotFound",
            None,  # "Serving runtimes": admission looks for the runtime only when there is a model
        ),
        (
            [model(), service(model={"name": "m"})],
            "runtime rt not found in namespace demo or at cluster scope",
            "RuntimeNotFound",
            "runtime rt does not support model m: runtime rt not found in namespace demo or at cluster "
            "scope",
        ),
        (
            [runtime(disabled=True), service()],
            "Runtime rt failed validation: cluster-scoped runtime rt is disabled",
            "RuntimeValidationError",
            "cluster-scoped runtime rt is disabled",
        ),
        (
            [runtime(disabled=True, kind="ServingRuntime"), model(), service(model={"name": "m"})],
            "Runtime rt does not support model m: namespace-scoped runtime rt is disabled",
            "RuntimeValidationError",
            "runtime rt does not support model m: namespace-scoped runtime rt is disabled",
        ),
        ([BROKEN, service()], CHAIN_ERROR, "RuntimeFetchError", CHAIN_ERROR),
        (
            [BROKEN, model(), service(model={"name": "m"})],
            f"Runtime rt does not support model m: {CHAIN_ERROR}",
            "RuntimeValidationError",
            f"runtime rt does not support model m: {CHAIN_ERROR}",
        ),
        (
            [runtime(), service(model={"name": "m"})],
            "No BaseModel or ClusterBaseModel with the name: m",
            "ModelReconcileError",
            'referenced model "m" not found in namespace "demo": ensure a BaseModel exists in this '
            "namespace or a ClusterBaseModel exists cluster-wide with this name",
        ),
        (
            [runtime(), model(disabled=True), service(model={"name": "m"})],
            "specified base model m is disabled",
            "ModelReconcileError",
            "model m is disabled",
        ),
        (
            [runtime(), model(modelFormat=None), service(model={"name": "m"})],
            f"Runtime rt does not support model m: {NO_FORMAT}",
            "RuntimeValidationError",
            f"runtime rt does not support model m: {NO_FORMAT}",
        ),
        (
            [runtime(), model(distribution="Sharded"), service(model={"name": "m"})],
            f"Runtime rt does not support model m: {SHARDED}",
            "RuntimeValidationError",
            f"runtime rt does not support model m: {SHARDED}",
        ),
        (
            [service(runtime=None)],
            "InferenceService must specify spec.runtime when spec.model is omitted",
            "RuntimeSelectionError",
            "at least one of spec.model or spec.runtime must be set",
        ),
        (
            [runtime(), service(engine=None, decoder={})],
            "engine component is required",
            "DeploymentModeError",
            "decoder cannot be specified without engine",
        ),
    ],
)
def test_refusals(objects: list[ApiObject], message: str, reason: str, denial: str | None) -> None:
    assert refusal(*objects) == message
    rendered = plan_of(*objects)
    assert [(event.reason, event.message) for event in rendered.events] == [(reason, message)]
    assert rendered.denial == denial


def test_only_a_missing_runtime_sets_a_condition() -> None:
    assert plan_of(service()).conditions == (
        {
            "type": "RuntimeReady",
            "status": "False",
            "severity": "Info",
            "reason": "RuntimeNotFound",
            "message": "runtime rt not found in namespace demo or at cluster scope",
        },
    )
    assert not plan_of(runtime(disabled=True), service()).conditions


@pytest.mark.parametrize(
    ("kind", "kinds", "used", "advised"),
    [
        ("ClusterBaseModel", ["BaseModel", "ClusterBaseModel"], "ClusterBaseModel", False),
        ("BaseModel", ["BaseModel", "ClusterBaseModel"], "BaseModel", False),
        ("ClusterBaseModel", ["BaseModel"], "BaseModel", True),
        ("BaseModel", ["ClusterBaseModel"], "ClusterBaseModel", True),
    ],
)
def test_a_models_declared_kind_comes_first(
    kind: str, kinds: list[str], used: str, advised: bool
) -> None:
    models = [model(kind=each) for each in kinds]
    rendered = plan_of(runtime(), *models, service(model={"name": "m", "kind": kind}))
    assert rendered.decision is not None
    assert rendered.decision["model"].startswith(used + "/")
    found = [str(w) for w in rendered.warnings if w.code == "ModelKindMismatch"]
    expected = (
        f'InferenceService/demo/chat: spec.model.kind: there is no {kind} "m"; the {used} of that name '
        f"is used; set kind: {used}"
    )
    assert found == ([expected] if advised else [])
