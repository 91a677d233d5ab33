"""Inputs shared by the API tests: small valid objects, the public catalog and the golden inputs."""

from __future__ import annotations

import copy
import os
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ome.api import API_VERSION, KINDS

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared"

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


def _catalog_texts(path: Path) -> Iterator[tuple[str, str]]:
    if path.is_dir():
        for each in sorted(path.rglob("*.yaml")):
            yield str(each.relative_to(path)), each.read_text(encoding="utf-8")
        return
    with tarfile.open(path) as archive:
        for member in archive:
            file = archive.extractfile(member) if member.name.endswith(".yaml") else None
            if file is not None:
                yield member.name, file.read().decode("utf-8")


@pytest.fixture(scope="session")
def catalog() -> list[tuple[str, dict[str, Any]]]:
    """Every object of the public catalog with its file name, read in place."""
    default = SHARED / "data" / "ome-catalog-v0.1.5.tar.gz"
    path = Path(os.environ.get("OME_CATALOG", default))
    if not path.exists():
        pytest.skip(f"no catalog at {path}: set OME_CATALOG to its .tar.gz or directory")
    found = [
        (name, raw)
        for name, text in _catalog_texts(path)
        for raw in yaml.load_all(text, yaml.SafeLoader)
        if isinstance(raw, dict) and raw.get("apiVersion") == API_VERSION
    ]
    assert found
    return found


@pytest.fixture(scope="session")
def golden() -> list[tuple[str, dict[str, Any]]]:
    """Every object of ours in the inputs of the golden cases, with its file name."""
    places = (ROOT / "tests" / "golden", SHARED / "spec" / "golden")
    folder = next((each for each in places if each.is_dir()), None)
    if folder is None:
        pytest.skip("no golden inputs: neither tests/golden nor ../shared/spec/golden exists")
    return [
        (str(path.relative_to(folder)), raw)
        for path in sorted(folder.glob("*/input.yaml"))
        for raw in yaml.load_all(path.read_text(encoding="utf-8"), yaml.SafeLoader)
        if isinstance(raw, dict) and raw.get("apiVersion") == API_VERSION
    ]
