"""Fields that the API server would drop, with the nearest known field."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ome.api import Problem, parse, unknown_fields

Make = Callable[..., dict[str, Any]]
SERVICE = "InferenceService"
RUNTIME = "ClusterServingRuntime"

CASES: list[tuple[str, str, Any, list[tuple[str, str]]]] = [
    (
        "misspelt",
        SERVICE,
        {"engine": {"minReplica": 1}},
        [("spec.engine.minReplica", 'did you mean "minReplicas"?')],
    ),
    ("nothing near", SERVICE, {"predictor": {}}, [("spec.predictor", "")]),
    (
        "in a container",
        SERVICE,
        {"engine": {"runner": {"imagePullPolice": "Always", "enviroment": []}}},
        [
            ("spec.engine.runner.imagePullPolice", 'did you mean "imagePullPolicy"?'),
            ("spec.engine.runner.enviroment", ""),
        ],
    ),
    (
        "in lists",
        RUNTIME,
        {
            "engineConfig": {
                "runner": {"name": "c", "env": [{"name": "A"}, {"name": "B", "vale": 1}]}
            }
        },
        [("spec.engineConfig.runner.env[1].vale", 'did you mean "value"?')],
    ),
    (
        "in a probe",
        SERVICE,
        {"engine": {"runner": {"readinessProbe": {"httpGet": {"prot": 1}}}}},
        [("spec.engine.runner.readinessProbe.httpGet.prot", 'did you mean "port"?')],
    ),
    (
        "in resources",
        SERVICE,
        {"engine": {"runner": {"resources": {"limit": {"cpu": 1}}}}},
        [("spec.engine.runner.resources.limit", 'did you mean "limits"?')],
    ),
    (
        "in a volume",
        SERVICE,
        {"engine": {"volumes": [{"name": "a", "emptyDir": {"sizelimit": "1Gi"}}]}},
        [("spec.engine.volumes[0].emptyDir.sizelimit", 'did you mean "sizeLimit"?')],
    ),
    (
        "in a security context",
        SERVICE,
        {"engine": {"securityContext": {"runAsUsr": 1}}},
        [("spec.engine.securityContext.runAsUsr", 'did you mean "runAsUser"?')],
    ),
    (
        "in affinity",
        "AcceleratorClass",
        {
            "discovery": {"affinity": {"nodeAffinty": {}}},
            "capabilities": {},
        },
        [("spec.discovery.affinity.nodeAffinty", 'did you mean "nodeAffinity"?')],
    ),
    (
        "under a map key",
        RUNTIME,
        {
            "supportedModelFormats": [
                {
                    "modelFormat": {"name": "a"},
                    "modelFramework": {"name": "b"},
                    "acceleratorConfig": {"nvidia.h100": {"runtimeArgOverride": []}},
                }
            ]
        },
        [
            (
                "spec.supportedModelFormats[0].acceleratorConfig[nvidia.h100].runtimeArgOverride",
                'did you mean "runtimeArgsOverride"?',
            )
        ],
    ),
    (
        "no ephemeral containers in a service",
        SERVICE,
        {"engine": {"leader": {"ephemeralContainers": []}}},
        [("spec.engine.leader.ephemeralContainers", "")],
    ),
    (
        "ephemeral containers in a runtime",
        RUNTIME,
        {"engineConfig": {"ephemeralContainers": []}},
        [],
    ),
    (
        "pod fields of later Kubernetes",
        SERVICE,
        {"engine": {"hostnameOverride": "x"}},
        [("spec.engine.hostnameOverride", "")],
    ),
    (
        "free-form and later parts",
        SERVICE,
        {
            "engine": {
                "labels": {"any.thing/x": "y"},
                "nodeSelector": {"a": "b"},
                "lifecycle": {"soon": {}},
                "autoscaler": {"keda": {"triggers": [{"anything": 1}]}},
            },
            "placement": {"clusters": []},
            "traffic": {"new": 1},
            "replicaRefs": {"engine": []},
        },
        [],
    ),
    (
        "raw configuration",
        "BaseModel",
        {"storage": {"storageUri": "hf://a/b"}, "modelConfiguration": {"any": {"x": 1}}},
        [],
    ),
    ("in nulls and scalars", SERVICE, {"engine": None, "model": {"name": "x"}}, []),
]


@pytest.mark.parametrize(
    ("kind", "spec", "expected"), [each[1:] for each in CASES], ids=[each[0] for each in CASES]
)
def test_unknown_fields(kind: str, spec: Any, expected: list[tuple[str, str]], make: Make) -> None:
    read = parse(make(kind, spec))
    assert unknown_fields(read) == [
        Problem("UnknownField", "unknown field, the API server drops it", read.ref, path, fix)
        for path, fix in expected
    ]


def test_outside_the_spec(make: Make) -> None:
    raw = make(SERVICE)
    raw["metadata"]["lables"] = {}
    raw["spce"] = {}
    raw["status"] = {"anything": {"x": 1}}
    assert [(each.path, each.fix) for each in unknown_fields(parse(raw))] == [
        ("metadata.lables", 'did you mean "labels"?'),
        ("spce", 'did you mean "spec"?'),
    ]


def test_the_catalog_has_none(catalog: list[tuple[str, dict[str, Any]]]) -> None:
    for name, raw in catalog:
        assert unknown_fields(parse(raw)) == [], name


def test_the_golden_inputs_have_none(golden: list[tuple[str, dict[str, Any]]]) -> None:
    for name, raw in golden:
        assert unknown_fields(parse(raw)) == [], name
