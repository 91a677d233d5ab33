"""The public surface of `ome.api`, and attributes with their API defaults."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import ome.api
from ome.api import KINDS, AcceleratorClass, ClusterServingRuntime, InferenceService, parse

Make = Callable[..., dict[str, Any]]


def test_all_is_sorted_and_real() -> None:
    def order(name: str) -> tuple[int, str]:
        return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)

    assert ome.api.__all__ == sorted(ome.api.__all__, key=order)
    assert all(hasattr(ome.api, name) for name in ome.api.__all__)


def test_kinds() -> None:
    assert {kind: (each.PLURAL, each.NAMESPACED) for kind, each in KINDS.items()} == {
        "AcceleratorClass": ("acceleratorclasses", False),
        "BaseModel": ("basemodels", True),
        "ClusterBaseModel": ("clusterbasemodels", False),
        "ClusterServingRuntime": ("clusterservingruntimes", False),
        "InferenceService": ("inferenceservices", True),
        "ServingRuntime": ("servingruntimes", True),
    }


def test_defaults_of_a_service(make: Make) -> None:
    read = parse(make("InferenceService", {"model": {"name": "m"}, "runtime": {"name": "r"}}))
    assert isinstance(read, InferenceService)
    assert read.spec is not None
    assert read.spec.model is not None
    assert read.spec.runtime is not None
    assert (read.spec.model.kind, read.spec.model.api_group) == ("ClusterBaseModel", "ome.io")
    runtime = read.spec.runtime
    assert (runtime.kind, runtime.api_group) == ("ClusterServingRuntime", "ome.io")
    assert runtime.auto_sync is True


def test_a_null_takes_the_default(make: Make) -> None:
    read = parse(make("InferenceService", {"runtime": {"name": "r", "autoSync": None}}))
    assert isinstance(read, InferenceService)
    assert read.spec is not None
    assert read.spec.runtime is not None
    assert read.spec.runtime.auto_sync is True


def test_defaults_of_a_runtime(make: Make) -> None:
    entry = {"modelFormat": {"name": "a"}, "modelFramework": {"name": "b", "weight": 0}}
    read = parse(make("ClusterServingRuntime", {"supportedModelFormats": [entry]}))
    assert isinstance(read, ClusterServingRuntime)
    assert read.spec is not None
    assert read.spec.supported_model_formats is not None
    first = read.spec.supported_model_formats[0]
    assert (first.model_format.operator, first.model_format.weight) == ("Equal", 1)
    assert first.model_framework.weight == 0


def test_odd_spellings(make: Make) -> None:
    spec = {
        "discovery": {"pciVendorID": "10de", "deviceIDs": ["2330"]},
        "capabilities": {"memoryGB": "80Gi", "performance": {"fp16Tflops": 9}},
        "resources": [{"name": "nvidia.com/gpu"}],
    }
    read = parse(make("AcceleratorClass", spec))
    assert isinstance(read, AcceleratorClass)
    assert read.spec is not None
    assert (read.spec.discovery.pci_vendor_id, read.spec.discovery.device_ids) == ("10de", ["2330"])
    assert read.spec.capabilities.memory_gb == "80Gi"
    assert read.spec.capabilities.performance is not None
    assert read.spec.capabilities.performance.fp16_tflops == 9
    assert read.spec.resources is not None
    assert read.spec.resources[0].quantity == "1"


def test_import_is_lean() -> None:
    program = "import sys, ome.api; print([m for m in ('kubernetes', 'yaml') if m in sys.modules])"
    shown = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert shown.stdout.strip() == "[]"
