"""Automatic selection: the choice, its record, its stability, and the refusal's exact text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ome.api import ApiObject, ObjectRef, parse
from ome.engines.engines import Engines
from ome.planning.plan import Hold, Plan
from ome.planning.planner import plan
from ome.resolution.selection import RECORD
from ome.snapshot import Snapshot
from ome.testing.builders import ENTRY, deployment, model, obj, plan_of, runtime, service

VECTORS = Path(__file__).parents[1] / "vectors"
ADVISORIES = json.loads((VECTORS / "advisory-messages.json").read_text())["cases"]
REFUSALS = json.loads((VECTORS / "no-runtime-found.json").read_text())["cases"]
AUTO = {**ENTRY, "autoSelect": True}


def auto(name: str, *, priority: int = 1, **spec: Any) -> ApiObject:
    return runtime(name=name, supportedModelFormats=[{**AUTO, "priority": priority}], **spec)


def wanting(**spec: Any) -> ApiObject:
    return service(runtime=None, model={"name": "m"}, **spec)


def test_the_chosen_runtime_is_rendered_from_its_own_spec_and_said() -> None:
    parent = runtime({"runner": {"name": "ome-container", "image": "parent"}}, name="base")
    child = auto("child", metadata={"annotations": {"ome.io/inherit-from": "base"}})
    rendered = plan_of(parent, child, model(), wanting())
    assert [warning.message for warning in rendered.warnings] == [
        "Runtime child will be auto-selected for model m"
    ]
    assert deployment(rendered)["metadata"]["labels"]["serving-runtime"] == "child"
    assert deployment(rendered)["spec"]["template"]["spec"]["containers"][0]["image"] == "engine:v1"
    assert rendered.decision is not None
    assert rendered.decision["selection"] == "Selected"
    assert rendered.decision["chain"] == ["ClusterServingRuntime/child"]


def test_the_record() -> None:
    sized = model(modelParameterSize="4B")
    near = auto("near", modelSizeRange={"min": "3B", "max": "5B"})
    far = auto("far", modelSizeRange={"min": "1B", "max": "70B"})
    rendered = plan_of(near, far, auto("low", priority=1), sized, wanting())
    assert rendered.decision is not None
    record = rendered.decision["record"]
    assert {key: record[key] for key in ("kind", "name", "score", "tieBreak", "runnersUp")} == {
        "kind": "ClusterServingRuntime",
        "name": "low",
        "score": 2,
        "tieBreak": "SizeDistance",
        "runnersUp": [
            {"runtime": "ClusterServingRuntime/near", "score": 2, "distance": 2_000_000_000},
            {"runtime": "ClusterServingRuntime/far", "score": 2, "distance": 69_000_000_000},
        ],
    }
    assert len(record["trigger"]) == len(record["digest"]) == 16
    assert json.loads(json.dumps(record)) == record


def planned(objects: list[ApiObject], live: dict[ObjectRef, str] | None = None) -> Plan:
    snapshot = Snapshot.of(objects, live=live)
    (target,) = snapshot.services()
    return plan(snapshot, target, Engines())


def recorded(target: ApiObject, rendered: Plan) -> ApiObject:
    """The service as it is after its status was written."""
    assert rendered.decision is not None
    return parse({**target.raw, "status": {RECORD: rendered.decision["record"]}})


def chosen(rendered: Plan) -> tuple[str, bool]:
    assert rendered.decision is not None
    return rendered.decision["record"]["name"], rendered.decision["kept"]


OLD, BETTER = auto("old"), auto("better", priority=9)
DEPLOYMENT = ObjectRef("Deployment", "demo", "chat-engine")


def test_a_recorded_choice_stays_when_a_better_runtime_comes() -> None:
    target = wanting()
    first = planned([OLD, model(), target])
    kept = recorded(target, first)
    again = planned([OLD, BETTER, model(), kept])
    assert (chosen(first), chosen(again)) == (("old", False), ("old", True))
    assert first.decision is not None
    assert again.decision is not None
    assert again.decision["record"] == first.decision["record"]
    assert list(again.objects()) == list(first.objects())
    assert chosen(planned([OLD, BETTER, model(), target])) == ("better", False)


@pytest.mark.parametrize(
    "change",
    [
        {"spec": {"minReplicas": 2}},
        {"metadata": {"labels": {"team": "red"}}},
        {"metadata": {"annotations": {"note": "x"}}},
    ],
)
def test_the_services_own_changes_trigger_a_new_choice(change: dict[str, Any]) -> None:
    target = wanting()
    kept = recorded(target, planned([OLD, model(), target]))
    raw = {**kept.raw, "metadata": {**kept.raw["metadata"], **change.get("metadata", {})}}
    raw["spec"] = {**raw["spec"], "engine": change.get("spec", {})}
    assert chosen(planned([OLD, BETTER, model(), parse(raw)])) == ("better", False)


def test_kubectls_own_bookkeeping_triggers_nothing() -> None:
    target = wanting()
    kept = recorded(target, planned([OLD, model(), target]))
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": "{}"}
    raw = {**kept.raw, "metadata": {**kept.raw["metadata"], "annotations": annotations}}
    assert chosen(planned([OLD, BETTER, model(), parse(raw)])) == ("old", True)


def test_a_changed_deployment_triggers_a_new_choice() -> None:
    target = wanting()
    kept = recorded(target, planned([OLD, model(), target], {DEPLOYMENT: "1"}))
    objects = [OLD, BETTER, model(), kept]
    assert chosen(planned(objects, {DEPLOYMENT: "1"})) == ("old", True)
    assert chosen(planned(objects, {DEPLOYMENT: "2"})) == ("better", False)


@pytest.mark.parametrize("gone", [[], [auto("old", disabled=True)]])
def test_a_runtime_that_stopped_resolving_triggers_a_new_choice(gone: list[ApiObject]) -> None:
    target = wanting()
    kept = recorded(target, planned([OLD, model(), target]))
    assert chosen(planned([*gone, BETTER, model(), kept])) == ("better", False)


@pytest.mark.parametrize("status", [{}, {RECORD: "junk"}, {RECORD: {"trigger": 5}}, {RECORD: {}}])
def test_a_record_that_can_not_be_read_is_no_record(status: dict[str, Any]) -> None:
    target = parse({**wanting().raw, "status": status})
    assert chosen(planned([OLD, model(), target])) == ("old", False)


def test_a_runtime_of_the_namespace_comes_first() -> None:
    local = obj("ServingRuntime", "local", auto("x").raw["spec"])
    rendered = plan_of(local, auto("cluster", priority=9), model(), wanting())
    assert rendered.decision is not None
    assert rendered.decision["record"]["namespace"] == "demo"
    assert rendered.decision["record"]["tieBreak"] == "Namespace"


@pytest.mark.parametrize("case", [c for c in REFUSALS if "excluded" in c], ids=lambda c: c["title"])
def test_documented_refusals(case: dict[str, Any]) -> None:
    """The documented populations, built from their reasons."""
    runtimes, target, wanted = population(case)
    rendered = plan_of(*runtimes, wanted, target)
    action = rendered.actions["engine"]
    assert isinstance(action, Hold)
    assert action.problems[0].message == case["message"]
    (condition,) = rendered.conditions
    assert (condition["reason"], condition["message"]) == ("RuntimeNotFound", case["message"])
    assert [(event.type, event.reason) for event in rendered.events] == [
        ("Warning", "RuntimeNotFound")
    ]
    assert rendered.denial == (
        "no supporting runtime found for model m and engine does not have complete runner "
        f"configuration: {case['message']}"
    )


def population(case: dict[str, Any]) -> tuple[list[ApiObject], ApiObject, ApiObject]:
    namespace = case["namespace"]
    mistral = {
        "modelFormat": {"name": "safetensors", "version": "1.0.0"},
        "modelFramework": {"name": "transformers", "version": "4.36.0"},
        "modelArchitecture": "MistralForCausalLM",
        "autoSelect": True,
    }
    qwen: dict[str, Any] = {
        "modelFormat": {"name": "safetensors", "version": "1.0.0"},
        "modelFramework": {"name": "transformers", "version": "4.40.1"},
        "modelArchitecture": "Qwen2ForCausalLM",
    }
    base = {"runtime": None, "model": {"name": "m"}, "engine": {}}
    if not case["excluded"]:
        return [], service(namespace=namespace, **base), model(**qwen)
    (name, why) = case["excluded"][0]
    pinned = runtime(name="pinned", supportedModelFormats=[{**qwen, "autoSelect": False}])
    if "accelerator class" in why:
        asked = {**base, "acceleratorSelector": {"acceleratorClass": "gpu"}}
        excluded = runtime(name=name, supportedModelFormats=[{**qwen, "autoSelect": True}])
        return [excluded], service(namespace=namespace, **asked), model(**qwen)
    if "deployment mode" in why:
        config = {"annotations": {"ome.io/deploymentMode": "MultiNode"}}
        excluded = runtime(config, name=name, supportedModelFormats=[{**qwen, "autoSelect": True}])
        asked = {**base, "deploymentMode": "OMENative"}
        return [excluded, pinned], service(namespace=namespace, **asked), model(**qwen)
    excluded = runtime(name=name, supportedModelFormats=[mistral])
    return [excluded, pinned], service(namespace=namespace, **base), model(**qwen)


def message(rendered: Plan) -> str:
    action = rendered.actions["engine"]
    assert isinstance(action, Hold)
    return action.problems[0].message


def test_both_runtimes_of_one_name_are_listed_the_namespaces_first() -> None:
    off = runtime(name="a", disabled=True)
    local = obj("ServingRuntime", "a", off.raw["spec"])
    text = message(plan_of(off, local, runtime(name="b", disabled=True), model(), wanting()))
    assert text.endswith(
        "Checked 3 runtimes (1 namespace-scoped, 2 cluster-scoped). Excluded runtimes: a (runtime is "
        "disabled); a (runtime is disabled); b (runtime is disabled)"
    )


def test_a_long_list_is_cut_and_says_how_many_more() -> None:
    off = [runtime(name=f"r{at:03}", disabled=True) for at in range(40)]
    text = message(plan_of(*off, model(), wanting()))
    assert text.count("(runtime is disabled)") == 25
    assert text.endswith("r024 (runtime is disabled); and 15 more")


def test_a_huge_list_is_cut_at_eight_kilobytes() -> None:
    entry = {**AUTO, "modelArchitecture": "X" * 3000}
    many = [runtime(name=f"r{at}", supportedModelFormats=[entry]) for at in range(10)]
    text = message(plan_of(*many, model(), wanting()))
    assert len(text) < 9 * 1024
    assert text.endswith("; and 8 more")
    one = runtime(name="only", supportedModelFormats=[{**AUTO, "modelArchitecture": "é" * 9000}])
    assert len(message(plan_of(one, model(), wanting())).encode()) < 9 * 1024


def test_a_model_without_a_format_can_not_be_chosen_for() -> None:
    rendered = plan_of(OLD, model(modelFormat=None), wanting())
    cause = "invalid model specification: modelFormat.name: model format name is required"
    assert message(rendered) == f"Failed to find runtime for model m: {cause}"
    assert [event.reason for event in rendered.events] == ["RuntimeSelectionError"]
    assert not rendered.conditions
    assert rendered.denial is not None
    assert rendered.denial.endswith(cause)


@pytest.mark.parametrize("broken", [{"modelFramework": None}, {"distribution": "Sharded"}])
def test_models_that_no_runtime_supports(broken: dict[str, Any]) -> None:
    assert "no runtime found to support model safetensors" in message(
        plan_of(OLD, model(**broken), wanting())
    )


@pytest.mark.parametrize("case", [c for c in ADVISORIES if "reason" in c], ids=lambda c: c["title"])
def test_documented_advisories(case: dict[str, Any]) -> None:
    target, objects = advised(case)
    rendered = plan_of(*objects, target)
    if "warning" in case:
        assert case["warning"] in [warning.message for warning in rendered.warnings]
    if "event" in case:
        found = [
            {"type": e.type, "reason": e.reason, "message": e.message} for e in rendered.events
        ]
        assert case["event"] in found


def advised(case: dict[str, Any]) -> tuple[ApiObject, list[ApiObject]]:
    entry = {
        "modelFormat": {"name": "safetensors", "version": "1.0.0"},
        "modelFramework": {"name": "transformers", "version": "4.45.0.dev0"},
        "modelArchitecture": "LlamaForCausalLM",
    }
    spec: dict[str, Any] = {"runtime": {"name": case["runtime"]}, "model": {"name": case["model"]}}
    version = "4.46.0" if "framework version" in case["reason"] else "4.45.0.dev0"
    wanted = model(
        case["model"],
        **{**entry, "modelFramework": {"name": "transformers", "version": version}},
    )
    config: dict[str, Any] = {"runner": {"name": "ome-container", "image": "x"}}
    if "accelerator" in case["reason"]:
        spec["acceleratorSelector"] = {"acceleratorClass": "gpu"}
    if "deployment mode" in case["reason"]:
        config["annotations"] = {"ome.io/deploymentMode": "MultiNode"}
        spec["engine"] = {"annotations": {"ome.io/deploymentMode": "OMENative"}}
    built = runtime(config, name=case["runtime"], supportedModelFormats=[entry])
    return service(**spec), [built, wanted]


def test_no_event_for_a_pinned_service() -> None:
    entry = {**ENTRY, "modelArchitecture": "Other"}
    objects = [runtime(supportedModelFormats=[entry]), model()]
    following = plan_of(*objects, service(model={"name": "m"}))
    assert [event.reason for event in following.events] == ["RuntimeCompatibilityAdvisory"]
    pinned = plan_of(
        *objects, service(model={"name": "m"}, runtime={"name": "rt", "autoSync": False})
    )
    assert not pinned.events
    assert "NotDeclared" in [warning.code for warning in pinned.warnings]
