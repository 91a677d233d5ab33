"""The compiled index against the plain scan, on random populations."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ome.api import ObjectRef
from ome.scoring.index import RuntimeIndex
from ome.scoring.ranking import rank
from ome.scoring.verdict import ANY_SERVICE, Request, judge

VERSIONS = st.sampled_from(["1.0.0", "1.0", "v1.0.0", "1.1.0", "1.0.0.dev0", "24.01", ""])
WEIGHTS = st.sampled_from([0, 1, 2, -3])
NAMES = st.sampled_from(["f", "g"])


def part(name: st.SearchStrategy[str]) -> st.SearchStrategy[dict[str, Any]]:
    operators = st.sampled_from(["Equal", "GreaterThan", "GreaterThanOrEqual", "LessThan"])
    return st.fixed_dictionaries(
        {"name": name}, optional={"version": VERSIONS, "operator": operators, "weight": WEIGHTS}
    )


COMMON: dict[str, Any] = {
    "modelArchitecture": st.sampled_from(["A", "B"]),
    "quantization": st.sampled_from(["fp8", "int4"]),
    "diffusionPipeline": st.sampled_from([{}, {"className": "P"}, {"vae": {"type": "T"}}]),
}
ENTRIES = st.fixed_dictionaries(
    {"modelFormat": part(NAMES), "modelFramework": part(st.just("w"))},
    optional={**COMMON, "autoSelect": st.booleans(), "priority": st.integers(1, 3)},
)
SIZES = st.sampled_from(["1B", "2B", "4B", "7B", "4b", "inf"])
SPECS = st.fixed_dictionaries(
    {"supportedModelFormats": st.lists(ENTRIES, max_size=3)},
    optional={
        "disabled": st.booleans(),
        "modelSizeRange": st.fixed_dictionaries({}, optional={"min": SIZES, "max": SIZES}),
        "acceleratorRequirements": st.fixed_dictionaries(
            {"acceleratorClasses": st.lists(st.sampled_from(["x", "y"]), max_size=2)}
        ),
        "engineConfig": st.sampled_from(
            [
                {"annotations": {"ome.io/deploymentMode": mode}}
                for mode in ("MultiNode", "OMENative", "odd")
            ]
        ),
    },
)
MODELS = st.fixed_dictionaries(
    {"modelFormat": part(NAMES)},
    optional={
        **COMMON,
        "modelFramework": part(st.just("w")),
        "modelParameterSize": SIZES,
        "distribution": st.sampled_from(["PerNode", "Sharded"]),
    },
)
REFS = st.builds(
    lambda namespace, name: ObjectRef(
        "ServingRuntime" if namespace else "ClusterServingRuntime", namespace, name
    ),
    st.sampled_from(["", "demo", "other"]),
    st.sampled_from(["a", "b", "c", "d"]),
)
REQUESTS = st.sampled_from(
    [ANY_SERVICE, Request(frozenset({"x"})), Request(frozenset(), {"engine": "OMENative"})]
)


def scan(fleet: dict[ObjectRef, Any], namespace: str, model: Any, request: Request) -> list[Any]:
    """The linear scan that the index must agree with."""
    return rank(
        judge(ref, spec, model, request)
        for ref, spec in fleet.items()
        if ref.namespace in ("", namespace)
    )


@given(st.lists(st.tuples(REFS, SPECS | st.none()), max_size=12), MODELS, REQUESTS)
def test_it_agrees_with_the_scan_after_any_changes(
    changes: list[tuple[ObjectRef, Any]], model: Any, request: Request
) -> None:
    index = RuntimeIndex()
    fleet: dict[ObjectRef, Any] = {}
    for ref, spec in changes:
        if spec is None:
            fleet.pop(ref, None)
            index.remove(ref)
        else:
            fleet[ref] = spec
            index.put(ref, spec)
    assert len(index) == len(fleet)
    for namespace in ("demo", "other", "elsewhere"):
        assert index.choose(namespace, model, request) == scan(fleet, namespace, model, request)
        expected = sorted(ref for ref in fleet if ref.namespace == namespace)
        expected += sorted(ref for ref in fleet if not ref.namespace)
        assert index.visible(namespace) == expected


def simple(low: str, high: str) -> dict[str, Any]:
    entry = {"modelFormat": {"name": "f"}, "modelFramework": {"name": "w"}, "autoSelect": True}
    return {"supportedModelFormats": [entry], "modelSizeRange": {"min": low, "max": high}}


@pytest.mark.parametrize("order", [("left", "right"), ("right", "left")])
def test_two_overlapping_ranges_give_one_winner_in_any_order(order: tuple[str, str]) -> None:
    specs = {"left": simple("2B", "4B"), "right": simple("3B", "5B")}
    index = RuntimeIndex(
        (ObjectRef("ClusterServingRuntime", "", name), specs[name]) for name in order
    )
    model = {
        "modelFormat": {"name": "f"},
        "modelFramework": {"name": "w"},
        "modelParameterSize": "4B",
    }
    assert [each.runtime.name for each in index.choose("demo", model, ANY_SERVICE)] == [
        "left",
        "right",
    ]


def test_a_thousand_entries_and_names_that_differ_by_case() -> None:
    entry = simple("1B", "9B")["supportedModelFormats"][0]
    many = {
        "supportedModelFormats": [{**entry, "modelArchitecture": f"A{at}"} for at in range(1000)]
    }
    index = RuntimeIndex(
        [
            (ObjectRef("ClusterServingRuntime", "", "many"), many),
            (ObjectRef("ClusterServingRuntime", "", "Many"), many),
        ]
    )
    model = {
        "modelFormat": {"name": "f"},
        "modelFramework": {"name": "w"},
        "modelArchitecture": "A999",
    }
    found = index.choose("demo", model, ANY_SERVICE)
    assert [(each.runtime.name, each.entry) for each in found] == [("Many", 999), ("many", 999)]
