"""What services refer to and can't have as they meant: chains, and accelerator classes, with exact texts."""

from __future__ import annotations

from typing import Any

import pytest

from ome.api import ApiObject
from ome.planning.plan import Hold
from ome.testing.builders import container, deployment, model, obj, plan_of, runtime, service

Json = dict[str, Any]


def inherits(name: str, parent: str, kind: str = "ClusterServingRuntime", **spec: Any) -> ApiObject:
    """A runtime that names a parent."""
    return runtime(
        name=name, kind=kind, metadata={"annotations": {"ome.io/inherit-from": parent}}, **spec
    )


DEEP = [
    inherits("rt", "b"),
    *(inherits(a, b) for a, b in ("bc", "cd", "de", "ef")),
    runtime(name="f"),
]


@pytest.mark.parametrize(
    ("runtimes", "kind", "cause"),
    [
        (
            [inherits("rt", "gone")],
            "ClusterServingRuntime",
            'inherit-from parent "gone" not found (chain so far: [rt])',
        ),
        (
            [inherits("rt", "mid"), inherits("mid", "gone")],
            "ClusterServingRuntime",
            'inherit-from parent "gone" not found (chain so far: [rt mid])',
        ),
        (
            [inherits("rt", "mid"), inherits("mid", "rt")],
            "ClusterServingRuntime",
            "inheritance cycle detected: [rt mid rt]",
        ),
        (
            [inherits("rt", "rt", "ServingRuntime"), runtime()],
            "ServingRuntime",
            "inheritance cycle detected: [rt rt]",
        ),
        (
            DEEP,
            "ClusterServingRuntime",
            "inheritance chain exceeds max depth 5 (chain: [rt b c d e])",
        ),
        (
            [inherits("rt", "off"), runtime(name="off", disabled=True)],
            "ClusterServingRuntime",
            "cluster-scoped runtime rt is disabled",
        ),
    ],
    ids=["missing", "missing above", "cycle", "own name", "six deep", "disabled parent"],
)
def test_chains(runtimes: list[ApiObject], kind: str, cause: str) -> None:
    asked = service(runtime={"name": "rt", "kind": kind}, model={"name": "m"})
    rendered = plan_of(*runtimes, model(), asked)
    assert {type(action) for action in rendered.actions.values()} == {Hold}
    assert [(event.reason, event.message) for event in rendered.events] == [
        ("RuntimeValidationError", f"Runtime rt does not support model m: {cause}")
    ]
    assert rendered.denial == f"runtime rt does not support model m: {cause}"


def test_a_disabled_parent_of_an_enabled_child() -> None:
    child = inherits("rt", "off", disabled=False)
    assert container(plan_of(child, runtime(name="off", disabled=True), service()))["image"]


def gpu(name: str, memory: str, **spec: Any) -> ApiObject:
    """A class that selects its nodes by a label."""
    found = {"discovery": {"nodeSelector": {"gpu": name}}, "capabilities": {"memoryGB": memory}}
    return obj("AcceleratorClass", name, {**found, **spec})


def least(memory: int) -> Json:
    return {"policy": "BestFit", "constraints": {"minMemory": memory}}


@pytest.mark.parametrize(
    ("classes", "selector", "chosen"),
    [
        ([gpu("a", "80Gi"), gpu("b", "80Gi")], least(70), "b"),  # the list's order is b, a
        ([gpu("a", "80Gi"), gpu("b", "80G")], least(75), "a"),  # 80G is 74 GiB
        ([gpu("a", "80Gi"), gpu("b", "80G")], least(74), "b"),
        ([gpu("a", "80Gi"), gpu("b", "80")], least(1), "a"),  # 80 bytes
        (
            [gpu("a", "80Gi", cost={"perHour": "-1"}), gpu("b", "80Gi", cost={"perHour": "1"})],
            {"policy": "Cheapest"},
            "a",
        ),
        ([gpu("a", "80Gi")], {"acceleratorClass": "a"}, "a"),  # no node has it: nobody looks
    ],
    ids=["equal fit", "80G", "80G fits", "80", "a price below zero", "no node"],
)
def test_classes(classes: list[ApiObject], selector: Json, chosen: str) -> None:
    rt = runtime(acceleratorRequirements={"acceleratorClasses": ["b", "a"]})
    rendered = plan_of(rt, *classes, service(acceleratorSelector=selector))
    assert deployment(rendered)["spec"]["template"]["spec"]["nodeSelector"] == {"gpu": chosen}
    assert not rendered.warnings


@pytest.mark.parametrize(
    ("spec", "wanted", "path"),
    [
        (
            {"acceleratorSelector": {"acceleratorClass": "a"}},
            "a",
            "spec.acceleratorSelector",
        ),
        ({"acceleratorSelector": {"policy": "BestFit"}}, "BestFit", "spec.acceleratorSelector"),
        (
            {"engine": {"acceleratorOverride": {"acceleratorClass": "a"}}},
            "a",
            "spec.engine.acceleratorOverride",
        ),
    ],
)
def test_a_named_runtime_that_lists_no_classes_gets_none_and_says_so(
    spec: Json, wanted: str, path: str
) -> None:
    rendered = plan_of(runtime(), gpu("a", "80Gi"), service(**spec))
    assert "nodeSelector" not in deployment(rendered)["spec"]["template"]["spec"]
    assert [str(warning) for warning in rendered.warnings] == [
        f"InferenceService/demo/chat: {path}: {wanted} isn't applied to the engine: runtime rt lists no "
        "accelerator classes; list the class in the runtime's acceleratorRequirements.acceleratorClasses"
    ]
