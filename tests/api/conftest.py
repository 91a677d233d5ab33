"""Inputs shared by the API tests: small valid objects and the golden inputs."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from ome.api import API_VERSION, KINDS

CASES = Path(__file__).resolve().parents[1] / "golden/cases"

SPECS: dict[str, dict[str, Any]] = {
    "AcceleratorClass": {"discovery": {}, "capabilities": {}},
    "BaseModel": {"storage": {"storageUri": "hf://org/model"}},
    "ClusterBaseModel": {"storage": {"storageUri": "hf://org/model"}},
    "ClusterServingRuntime": {"engineConfig": {"runner": {"name": "ome-container"}}},
    "InferenceService": {"model": {"name": "m"}, "engine": {}},
    "ServingRuntime": {"engineConfig": {"runner": {"name": "ome-container"}}},
}


@pytest.fixture
def make() -> Callable[..., dict[str, Any]]:
    """`make("BaseModel")` is a valid object; a second argument replaces its spec."""

    def build(kind: str, spec: object = None) -> dict[str, Any]:
        metadata = {"name": "one"}
        if KINDS[kind].NAMESPACED:
            metadata["namespace"] = "demo"
        own = copy.deepcopy(SPECS[kind]) if spec is None else spec
        return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": own}

    return build


@pytest.fixture(scope="session")
def golden() -> list[tuple[str, dict[str, Any]]]:
    """Every object of ours in the inputs of the golden cases, with its file name."""
    found = [
        (path.parent.name, raw)
        for path in sorted(CASES.glob("*/input.yaml"))
        for raw in yaml.load_all(path.read_text(encoding="utf-8"), yaml.SafeLoader)
        if isinstance(raw, dict) and raw.get("apiVersion") == API_VERSION
    ]
    assert found
    return found
