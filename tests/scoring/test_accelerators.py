"""Accelerator policies and constraints."""

from __future__ import annotations

from typing import Any

import pytest

from ome.scoring.accelerators import choose_class, failed_constraint, matches_node


def gpu(memory: str | None = None, **spec: Any) -> dict[str, Any]:
    capabilities = dict(spec.pop("capabilities", {}))
    if memory is not None:
        capabilities["memoryGB"] = memory
    return {"capabilities": capabilities, **spec}


def fast(tflops: int, memory: str = "80Gi", **more: Any) -> dict[str, Any]:
    return gpu(memory, capabilities={"performance": {"fp16Tflops": tflops, **more}})


@pytest.mark.parametrize(
    ("spec", "constraints", "failed"),
    [
        (gpu(), {}, None),
        (gpu(), {"excludedClasses": ["it"]}, "excludedClasses"),
        (gpu(), {"excludedClasses": []}, None),
        (gpu("80Gi"), {"minMemory": 80}, None),
        (gpu("80G"), {"minMemory": 75}, "minMemory"),
        (gpu("80G"), {"minMemory": 74}, None),
        (gpu("80"), {"minMemory": 1}, "minMemory"),
        (gpu(), {"minMemory": 1}, "minMemory"),
        (gpu(), {"maxMemory": 100}, "maxMemory"),
        (gpu("80Gi"), {"maxMemory": 79}, "maxMemory"),
        (gpu(family="Hopper"), {"architectureFamilies": ["hopper"]}, None),
        (gpu(vendor="nvidia", family="hopper"), {"architectureFamilies": ["NVIDIA-Hopper"]}, None),
        (
            gpu(vendor="amd", family="hopper"),
            {"architectureFamilies": ["nvidia-hopper"]},
            "architectureFamilies",
        ),
        (gpu(capabilities={"features": ["NVLink"]}), {"requiredFeatures": ["nvlink"]}, None),
        (gpu(), {"requiredFeatures": ["nvlink"]}, "requiredFeatures"),
        (gpu(capabilities={"computeCapability": "10.0"}), {"minArchitectureVersion": "9.0"}, None),
        (
            gpu(capabilities={"computeCapability": "8.9"}),
            {"minArchitectureVersion": "9.0"},
            "minArchitectureVersion",
        ),
        (gpu(), {"minArchitectureVersion": "9.0"}, "minArchitectureVersion"),
        (gpu(), {"minComputePerformanceTFLOPS": 10**6, "preferredPrecisions": ["fp8"]}, None),
    ],
)
def test_constraints(spec: dict[str, Any], constraints: dict[str, Any], failed: str | None) -> None:
    assert failed_constraint("it", spec, constraints) == failed


@pytest.mark.parametrize(
    ("policy", "classes", "constraints", "chosen"),
    [
        ("FirstAvailable", [("b", gpu()), ("a", gpu())], {}, "b"),
        ("FirstAvailable", [], {}, None),
        (
            "BestFit",
            [("big", fast(1, "141Gi")), ("fit", fast(1, "48Gi"))],
            {"minMemory": 40},
            "fit",
        ),
        ("BestFit", [("a", gpu()), ("b", gpu())], {}, "a"),
        ("BestFit", [("a", gpu()), ("b", fast(5))], {}, "b"),
        (
            "BestFit",
            [("slow", fast(100)), ("fast", fast(900))],
            {"minComputePerformanceTFLOPS": 500},
            "fast",
        ),
        (
            "BestFit",
            [("a", fast(400)), ("b", fast(300, int8Tops=900))],
            {"minComputePerformanceTFLOPS": 800, "preferredPrecisions": ["fp8"]},
            "b",
        ),
        ("MostCapable", [("a", fast(10, "40Gi")), ("b", fast(5, "80Gi"))], {}, "b"),
        ("MostCapable", [("a", gpu()), ("b", gpu())], {}, "a"),
        ("Cheapest", [("a", gpu()), ("b", gpu())], {}, None),
        ("Cheapest", [("a", gpu())], {}, "a"),
        (
            "Cheapest",
            [
                ("a", gpu(cost={"perHour": "4"})),
                ("b", gpu(cost={"perHour": "5", "spotPerHour": "1"})),
            ],
            {},
            "b",
        ),
        (
            "Cheapest",
            [("a", gpu(cost={"perMillionTokens": "0.1"})), ("b", gpu(cost={"perHour": "9"}))],
            {},
            "b",
        ),
        (
            "Cheapest",
            [
                ("a", gpu(cost={"perMillionTokens": "3"})),
                ("b", gpu(cost={"perMillionTokens": "2"})),
            ],
            {},
            "b",
        ),
        (
            "Cheapest",
            [("a", gpu(cost={"tier": "high"})), ("b", gpu(cost={"tier": "odd"}))],
            {},
            "b",
        ),
        (
            "Cheapest",
            [("a", gpu(cost={"perHour": "-1"})), ("b", gpu(cost={"perHour": "1"}))],
            {},
            "a",
        ),
        (
            "Cheapest",
            [("a", gpu(cost={"perHour": "1"})), ("b", gpu(cost={"perHour": "1"}))],
            {},
            "a",
        ),
    ],
)
def test_policies(
    policy: str, classes: list[Any], constraints: dict[str, Any], chosen: str | None
) -> None:
    assert choose_class(policy, classes, constraints) == chosen


@pytest.mark.parametrize(
    ("spec", "labels", "capacity", "matches"),
    [
        ({}, {}, {}, True),
        ({"discovery": {"nodeSelector": {"a": "1"}}}, {"a": "1", "b": "2"}, {}, True),
        ({"discovery": {"nodeSelector": {"a": "1"}}}, {"a": "2"}, {}, False),
        ({"resources": [{"name": "gpu", "quantity": "8"}]}, {}, {"gpu": "1"}, True),
        ({"resources": [{"name": "gpu"}]}, {}, {"gpu": "0"}, False),
        ({"resources": [{"name": "gpu"}]}, {}, {}, False),
    ],
)
def test_nodes(spec: Any, labels: Any, capacity: Any, matches: bool) -> None:
    assert matches_node(spec, labels, capacity) is matches
