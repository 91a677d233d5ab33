"""Matching one entry, and the checks on one runtime, from the documented tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ome.api import ObjectRef
from ome.scoring.matching import entry_mismatches, model_label, pipeline_mismatch
from ome.scoring.verdict import ANY_SERVICE, Request, compatibility_error, judge

VECTORS = Path(__file__).parents[1] / "vectors"
RUNTIME = ObjectRef("ClusterServingRuntime", "", "rt")


def cases(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((VECTORS / f"{name}.json").read_text())["cases"]
    return found


def reason(
    spec: dict[str, Any], model: dict[str, Any], request: Request = ANY_SERVICE
) -> str | None:
    problem = judge(RUNTIME, spec, model, request).reason
    return None if problem is None else problem.message


@pytest.mark.parametrize("case", cases("mismatch-reasons"), ids=lambda case: case["title"])
def test_documented_reasons(case: dict[str, Any]) -> None:
    if "entry" in case:
        assert entry_mismatches(case["entry"], case["model"]) == case["reasons"]
    else:
        assert reason({"supportedModelFormats": case["entries"]}, case["model"]) == case["reason"]


PIPELINES = [case for case in cases("diffusion-pipeline") if case["check"] == "match"]


@pytest.mark.parametrize("case", PIPELINES, ids=lambda case: case["where"])
def test_documented_pipelines(case: dict[str, Any]) -> None:
    assert pipeline_mismatch(case["entry"], case["model"]) == case["reason"]


def test_additional_components_are_looked_at_by_name() -> None:
    entry = {"additionalComponents": {"b": {}, "a": {"type": "X"}}}
    assert pipeline_mismatch(entry, {"additionalComponents": {"b": {}}}) == (
        "diffusion component a missing in model"
    )
    model = {"additionalComponents": {"a": {"type": "Y"}, "b": {}}}
    assert pipeline_mismatch(entry, model) == "a type mismatch (model=Y, runtime=X)"
    assert pipeline_mismatch(entry, {}) == (
        "diffusion pipeline missing required additional components"
    )


@pytest.mark.parametrize("case", cases("deployment-mode"), ids=lambda case: case["where"])
def test_documented_modes(case: dict[str, Any]) -> None:
    isvc, spec = dict(case["isvc"]), dict(case["runtime"])
    metadata = {"annotations": isvc.pop("metadataAnnotations", {})}
    spec.pop("metadataAnnotations", None)
    request = Request.of({"metadata": metadata, "spec": isvc})
    assert reason({**spec, "supportedModelFormats": [{}]}, {}, request) == case["reason"]


CLASSES = [case for case in cases("accelerator-class") if case["check"] == "match"]


@pytest.mark.parametrize("case", CLASSES, ids=lambda case: case["where"])
def test_documented_classes(case: dict[str, Any]) -> None:
    spec = {
        "acceleratorRequirements": {"acceleratorClasses": case["runtimeClasses"]},
        "supportedModelFormats": [{}],
    }
    found = reason(spec, {}, Request(frozenset(case["isvcClasses"])))
    expected = "runtime does not support the required accelerator class"
    assert found == (None if case["candidate"] else expected)


@pytest.mark.parametrize(
    ("spec", "annotations", "classes"),
    [
        ({}, {}, set()),
        ({}, {"ome.io/accelerator-class": "a"}, {"a"}),
        ({}, {"ome.io/accelerator-class": ""}, {""}),
        ({"acceleratorSelector": {"acceleratorClass": "b", "policy": "BestFit"}}, {}, {"b"}),
        (
            {
                "engine": {"acceleratorOverride": {"acceleratorClass": "c"}},
                "decoder": {"acceleratorOverride": {"acceleratorClass": "d"}},
            },
            {"ome.io/accelerator-class": "a"},
            {"a", "c", "d"},
        ),
    ],
)
def test_the_pooled_classes_of_a_service(
    spec: dict[str, Any], annotations: dict[str, str], classes: set[str]
) -> None:
    assert Request.of({"metadata": {"annotations": annotations}, "spec": spec}).classes == classes


def test_the_first_failed_check_is_the_reason() -> None:
    spec: dict[str, Any] = {
        "disabled": True,
        "engineConfig": {"annotations": {"ome.io/deploymentMode": "MultiNode"}},
        "supportedModelFormats": [],
        "modelSizeRange": {"max": "1B"},
    }
    model = {"modelFormat": {"name": "f"}, "modelParameterSize": "2B"}
    request = Request(frozenset({"gpu"}), {"engine": "OMENative"})
    codes = []
    for fix in (
        {"disabled": False},
        {"acceleratorRequirements": {"acceleratorClasses": ["gpu"]}},
        {"engineConfig": {}},
        {"supportedModelFormats": [{"modelFormat": {"name": "f"}}]},
        {"modelSizeRange": {}},
    ):
        problem = judge(RUNTIME, spec, model, request).reason
        assert problem is not None
        codes.append((problem.code, compatibility_error("rt", model, problem).split(":")[0]))
        spec = {**spec, **fix}
    assert judge(RUNTIME, spec, model, request).reason is None
    named, unnamed = "runtime rt does not support model f", "runtime rt does not support model "
    assert codes == [
        ("RuntimeDisabled", named),
        ("AcceleratorClassMismatch", unnamed),
        ("DeploymentModeMismatch", unnamed),
        ("ModelFormatMismatch", named),
        ("ModelSizeOutOfRange", named),
    ]


def test_a_sharded_model_matches_nothing() -> None:
    entry = {"modelFormat": {"name": "f"}, "modelFramework": {"name": "w"}}
    assert entry_mismatches(entry, {**entry, "distribution": "Sharded"}) == [
        "no model cache provider is configured for sharded model loading"
    ]


def test_the_label_leaves_out_what_is_absent() -> None:
    assert model_label({}) == "mt"
    assert model_label({"modelFormat": {"name": "f"}, "modelFramework": {"version": "1"}}) == "mt:f"
    full = {
        "modelFormat": {"name": "f", "version": "1"},
        "modelArchitecture": "A",
        "quantization": "q",
        "modelFramework": {"name": "w", "version": "2"},
    }
    assert model_label(full) == "mt:f:1:A:q:w:2"


@pytest.mark.parametrize(
    ("entry", "model", "expected"),
    [
        ({"quantization": "fp8"}, {}, ["model has no quantization but runtime requires fp8"]),
        (
            {},
            {"modelArchitecture": "A"},
            ["model has architecture A but runtime has no architecture requirement"],
        ),
        (
            {},
            {"modelFramework": {"name": "w"}},
            ["model has framework w but runtime has no framework requirement"],
        ),
        (
            {"modelFormat": {"name": "f", "version": "24.01"}},
            {"modelFormat": {"name": "f", "version": "24.01"}},
            ["format version mismatch (model=24.01, runtime=24.01)"],
        ),
    ],
)
def test_presence(entry: dict[str, Any], model: dict[str, Any], expected: list[str]) -> None:
    assert entry_mismatches(entry, model) == expected
