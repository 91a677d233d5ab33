"""Lint: every rule with its code, place, reason and fix."""

from __future__ import annotations

from typing import Any

import pytest

from ome.api import ApiObject, parse
from ome.engines.engines import Engines
from ome.lint.findings import LintFinding
from ome.lint.lint import lint
from ome.lint.spelling import suggest_size, suggest_version
from ome.scoring.sizes import is_readable
from ome.scoring.versions import parse_version
from ome.snapshot import Snapshot, read_revision
from ome.testing.builders import ENTRY, model, obj, runtime, service

AUTO = {**ENTRY, "autoSelect": True}


def found(*objects: ApiObject) -> list[LintFinding]:
    return list(lint(Snapshot.of(objects), Engines()))


def lines(*objects: ApiObject) -> list[str]:
    return [
        f"{each.severity} {each.code} {each.ref} {each.path}: {each.message} | {each.fix}"
        for each in found(*objects)
    ]


def entry(**changes: Any) -> dict[str, Any]:
    return {**AUTO, **changes}


def framework(**fields: Any) -> dict[str, Any]:
    return {"name": "transformers", **fields}


RT = "ClusterServingRuntime/rt"
FIRST = "spec.supportedModelFormats[0]"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"supportedModelFormats": [AUTO]}, []),
        (
            {"supportedModelFormats": [entry(modelFramework=framework(version="24.01"))]},
            [
                f'error VersionUnreadable {RT} {FIRST}.modelFramework.version: "24.01" is no version: it '
                'never matches, not even itself | write "24.1"'
            ],
        ),
        (
            {"supportedModelFormats": [entry(modelFramework=framework(version="x" * 200))]},
            [
                f'error VersionUnreadable {RT} {FIRST}.modelFramework.version: "{"x" * 39}…" is no '
                "version: it never matches, not even itself | write up to three numbers without leading "
                "zeros, such as 4.45.0"
            ],
        ),
        (
            {
                "supportedModelFormats": [
                    entry(modelFramework=framework(version="4.45.0.dev0", operator="GreaterThan"))
                ]
            },
            [
                f"warning OperatorDefeated {RT} {FIRST}.modelFramework.operator: the suffix of 4.45.0.dev0 "
                "defeats GreaterThan: only the same version matches | leave the suffix out, or the operator"
            ],
        ),
        (
            {
                "supportedModelFormats": [
                    entry(modelFramework=framework(version="4.45.0", operator="GreaterThanOrEqual"))
                ]
            },
            [
                f"warning OperatorIsUpperLimit {RT} {FIRST}.modelFramework.operator: GreaterThanOrEqual "
                "makes the version an upper limit for the model's, not a lower one | leave the operator out "
                "to match one version"
            ],
        ),
        (
            {
                "supportedModelFormats": [
                    entry(modelFramework=framework(version="4.45.0", operator="LessThan"))
                ]
            },
            [
                f'warning OperatorUnknown {RT} {FIRST}.modelFramework.operator: "LessThan" is no operator: it '
                "acts as a strict Equal | use one of Equal, GreaterThan, GreaterThanOrEqual"
            ],
        ),
        (
            {"supportedModelFormats": [entry(modelFormat={"name": "safetensors", "weight": 0})]},
            [
                f"warning WeightZero {RT} {FIRST}.modelFormat.weight: weight 0 counts as 10 in the score | "
                "leave it out for 1, or set the weight that you mean"
            ],
        ),
        (
            {"modelSizeRange": {"min": "2b", "max": "4b"}},
            [
                f'warning SizeUnreadable {RT} spec.modelSizeRange.min: "2b" counts as 0: it sets no lower '
                'limit | write "2B"',
                f'error SizeUnreadable {RT} spec.modelSizeRange.max: "4b" counts as 0: it rejects every '
                'model with a size | write "4B"',
            ],
        ),
        (
            {"modelSizeRange": {"max": "lots"}},
            [
                f'error SizeUnreadable {RT} spec.modelSizeRange.max: "lots" counts as 0: it rejects every '
                "model with a size | write a number with M, B or T, such as 7B"
            ],
        ),
        (
            {"modelSizeRange": {"min": "4B", "max": "2B"}},
            [
                f"error RangeInverted {RT} spec.modelSizeRange: min 4B is above max 2B: every model with a "
                "size is rejected | swap them"
            ],
        ),
        (
            {
                "supportedModelFormats": [
                    entry(priority=1),
                    entry(priority=2),
                    entry(priority=3, name="x"),
                ]
            },
            [
                f"error DifferentPriorities {RT} spec.supportedModelFormats[1].priority: different priorities "
                "assigned for the model format  under the clusterservingruntime rt | give entries of one name "
                "one priority, or different names"
            ],
        ),
        (
            {
                "supportedModelFormats": [entry(acceleratorConfig={"Gpu-A": {}, "gpu-a": {}})],
                "acceleratorRequirements": {"acceleratorClasses": ["gpu-a"]},
            },
            [
                f"warning AcceleratorConfigUnknownClass {RT} {FIRST}.acceleratorConfig[Gpu-A]: no accelerator "
                'class is named "Gpu-A" in acceleratorRequirements: the settings are ignored | did you mean '
                '"gpu-a"?'
            ],
        ),
    ],
)
def test_runtimes(spec: dict[str, Any], expected: list[str]) -> None:
    assert lines(runtime(**spec)) == expected


def test_an_entry_that_is_chosen_without_what_it_inherits() -> None:
    annotations = {"ome.io/inherit-from": "base"}
    child = runtime(supportedModelFormats=[AUTO], metadata={"annotations": annotations})
    assert lines(child, runtime(name="base", supportedModelFormats=[])) == [
        f"warning AutoSelectInherits {RT} {FIRST}.autoSelect: OME would render the runtime without "
        "what it inherits from base | name the runtime in services, and leave autoSelect out"
    ]


def test_classes_of_the_input_decide_which_keys_are_known() -> None:
    gpu = obj("AcceleratorClass", "zeta", {"discovery": {}, "capabilities": {}})
    (line,) = lines(runtime(supportedModelFormats=[entry(acceleratorConfig={"gpu": {}})]), gpu)
    assert line.endswith(
        'no accelerator class is named "gpu" in the input: the settings are ignored | create the class or '
        "remove the key"
    )


def test_models() -> None:
    bad = model(
        modelParameterSize="7b",
        modelFramework=framework(version="V4.50.0"),
        modelFormat={"name": "f"},
    )
    assert [line.split(": ", 1)[1] for line in lines(bad)] == [
        '"V4.50.0" is no version: it never matches, not even itself | write "v4.50.0"',
        '"7b" counts as 0: ranges with a min reject the model | write "7B"',
    ]


def ranged(name: str, low: str | None, high: str | None, **changes: Any) -> ApiObject:
    sizes = {key: value for key, value in (("min", low), ("max", high)) if value}
    return runtime(name=name, supportedModelFormats=[entry(**changes)], modelSizeRange=sizes)


@pytest.mark.parametrize(
    ("first", "second", "overlap"),
    [
        (ranged("a", "2B", "4B"), ranged("b", "3B", "5B"), True),
        (ranged("a", "2B", "4B"), ranged("b", "3B", "6B"), False),
        (ranged("a", "2B", "4B"), ranged("b", "5B", "7B"), False),
        (ranged("a", None, None), ranged("b", None, None), True),
        (ranged("a", "2B", None), ranged("b", "2B", None), True),
        (ranged("a", "2B", "4B"), ranged("b", "3B", "5B", priority=2), False),
        (ranged("a", "2B", "4B"), ranged("b", "3B", "5B", quantization="fp8"), False),
        (ranged("a", "2B", "4B"), ranged("b", "3B", "5B", autoSelect=False), False),
        (
            ranged("a", "2B", "4B"),
            obj("ServingRuntime", "b", ranged("b", "3B", "5B").raw["spec"]),
            False,
        ),
    ],
)
def test_overlaps(first: ApiObject, second: ApiObject, overlap: bool) -> None:
    codes = [each.code for each in found(first, second)]
    assert codes == (["RuntimesOverlap"] if overlap else [])


def test_a_disabled_runtime_overlaps_nothing() -> None:
    off = runtime(name="b", supportedModelFormats=[AUTO], disabled=True)
    assert not found(runtime(name="a", supportedModelFormats=[AUTO]), off)


def test_a_runtime_that_no_model_can_use() -> None:
    other = runtime(supportedModelFormats=[entry(modelArchitecture="Other")])
    (line,) = lines(other, model())
    assert line == (
        f"warning RuntimeUnmatched {RT} spec.supportedModelFormats: no model of the input can use the "
        "runtime: none has safetensors, transformers, Other | check the entry against the model that it is "
        "meant for"
    )
    near = runtime(supportedModelFormats=[entry(quantization="fp8")])
    (line,) = lines(near, model(), model("longer-name"))
    assert "can use the runtime: m: model format 'mt:safetensors:" in line
    assert not lines(runtime(supportedModelFormats=[AUTO]), model())
    assert not lines(near, model(modelFormat=None))


def test_services_are_planned() -> None:
    objects = [
        runtime(),
        service("bad", runtime={"name": "gone"}),
        service("good", model={"name": "m"}),
    ]
    assert [(each.severity, each.code, str(each.ref)) for each in found(*objects)] == [
        ("error", "RuntimeNotFound", "InferenceService/demo/bad"),
        ("error", "ModelNotFound", "InferenceService/demo/good"),
    ]
    chat = runtime({"runner": {"name": "ome-container", "image": "x", "args": ["{% raw %}"]}})
    assert [each.code for each in found(chat, service())] == ["ForeignTemplate"]
    assert not found(
        runtime(supportedModelFormats=[AUTO]), model(), service(runtime=None, model={"name": "m"})
    )


@pytest.mark.parametrize(
    ("text", "proposal"),
    [
        ("1.08.0", "1.8.0"),
        ("V1.0.0", "v1.0.0"),
        ("24.01", "24.1"),
        ("1.2-beta", "1.2.0-beta"),
        ("4.45.dev0", "4.45.0.dev0"),
        ("4.45dev0", "4.45.0-dev0"),
        ("1.", "1"),
        ("1.0.0-", "1.0.0"),
        ("١.٢", "1.2"),
        ("", None),
        ("latest", None),
    ],
)
def test_versions_are_respelled(text: str, proposal: str | None) -> None:
    assert suggest_version(text) == proposal
    assert proposal is None or parse_version(proposal)


@pytest.mark.parametrize(
    ("text", "proposal"),
    [
        ("4b", "4B"),
        ("7 B", "7B"),
        ("7BB", "7B"),
        ("1_000", "1000"),
        ("٧B", "7B"),
        ("inf", None),
        ("B", None),
    ],
)
def test_sizes_are_respelled(text: str, proposal: str | None) -> None:
    assert suggest_size(text) == proposal
    assert proposal is None or is_readable(proposal)


@pytest.mark.parametrize(
    ("memory", "means", "fix"),
    [
        ("80Gi", "", ""),
        ("80G", "", ""),
        ("80", "means 80 bytes", 'write "80Gi"'),
        ("80M", "is less than 1 GiB", "write the memory with its unit, such as 80Gi"),
    ],
)
def test_a_class_with_less_than_a_gib(memory: str, means: str, fix: str) -> None:
    gpu = obj("AcceleratorClass", "a", {"discovery": {}, "capabilities": {"memoryGB": memory}})
    said = (
        f'warning MemoryBelowGiB AcceleratorClass/a spec.capabilities.memoryGB: "{memory}" {means}: every '
        f"minMemory rejects the class | {fix}"
    )
    assert lines(gpu) == ([said] if fix else [])


def test_a_class_with_a_price_below_zero() -> None:
    cost = {"perHour": "-1", "spotPerHour": "0", "tier": "low"}
    gpu = obj("AcceleratorClass", "a", {"discovery": {}, "capabilities": {}, "cost": cost})
    assert lines(gpu) == [
        'warning PriceNegative AcceleratorClass/a spec.cost.perHour: "-1" is a price below zero: the policy '
        "Cheapest prefers it to any other | write the price, or leave it out"
    ]


@pytest.mark.parametrize(
    ("stored", "fix"),
    [
        ("", "add it to the input to have the service's pods looked at"),
        ("cr-other-00000001", "add it to the input to have the service's pods looked at"),
        ("cr-rt-00000001", "did you mean cr-rt-00000001?"),
    ],
)
@pytest.mark.parametrize("by_status", [False, True])
def test_a_service_pinned_to_a_revision_that_the_input_lacks(
    stored: str, fix: str, by_status: bool
) -> None:
    reference: dict[str, Any] = {"name": "rt", "autoSync": False}
    pinned = service(runtime=reference if by_status else {**reference, "revision": PINNED})
    if by_status:
        pinned = parse({**pinned.raw, "status": {"pinnedRevisionName": PINNED}})
    owner = stored.removeprefix("cr-").rpartition("-")[0]
    raw = {"metadata": {"name": stored, "labels": {"ome.io/runtime-of": owner}}, "data": {}}
    revision = read_revision(raw)
    snapshot = Snapshot.of([runtime(), pinned], revisions=[revision] if revision else [])
    text = f"pinned revision {PINNED} missing from ome"
    if not by_status:
        text = f"explicit pin {PINNED} not found in namespace ome"
    assert [
        (each.severity, each.code, each.message, each.fix) for each in lint(snapshot, Engines())
    ] == [("note", "RevisionMissing", text, fix)]


PINNED = "cr-rt-0000000a"
CODES = [
    "AcceleratorConfigUnknownClass",
    "AutoSelectInherits",
    "DifferentPriorities",
    "MemoryBelowGiB",
    "OperatorDefeated",
    "OperatorIsUpperLimit",
    "OperatorUnknown",
    "PriceNegative",
    "RangeInverted",
    "RevisionMissing",
    "RuntimeUnmatched",
    "RuntimesOverlap",
    "SizeUnreadable",
    "VersionUnreadable",
    "WeightZero",
]


def test_the_codes_are_documented_and_none_is_renamed() -> None:
    from pathlib import Path

    root = Path(__file__).parents[2]
    sources = "".join(path.read_text() for path in (root / "ome/lint").glob("*.py"))
    text = (root / "docs/lint.md").read_text()
    for code in CODES:
        assert f'"{code}"' in sources
        assert f"`{code}`" in text
