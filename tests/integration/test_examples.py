"""Every folder of examples, and what OME renders from it, as a real API server sees it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from controlplane import Kubectl

from tests.integration.conftest import ROOT, ome

Json = dict[str, Any]
EXAMPLES = ROOT / "examples"
NAMES = sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir())
WAIT = "--timeout=60s"


def _objects(name: str) -> list[Json]:
    files = sorted((EXAMPLES / name).glob("*.yaml"))
    return [each for file in files for each in yaml.safe_load_all(file.read_text()) if each]


def _differences(given: Any, got: Any, path: str = "") -> Iterator[str]:
    """`+path=value` for what the API server added, `-path` for what it dropped or changed."""
    if isinstance(given, dict) and isinstance(got, dict):
        for key in sorted({*given, *got}):
            where = f"{path}.{key}" if path else key
            if key not in given:
                yield f"+{where}={json.dumps(got[key])}"
            elif key not in got:
                yield f"-{where}"
            else:
                yield from _differences(given[key], got[key], where)
    elif isinstance(given, list) and isinstance(got, list) and len(given) == len(got):
        for left, right in zip(given, got, strict=True):
            yield from _differences(left, right, f"{path}[]")
    elif given != got:
        yield f"-{path}"


def _make_namespaces(kubectl: Kubectl, names: set[str]) -> None:
    made = {"apiVersion": "v1", "kind": "Namespace"}
    items = [{**made, "metadata": {"name": name}} for name in sorted(names)]
    kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))


@pytest.fixture
def example(request: pytest.FixtureRequest, kubectl: Kubectl, crds: None) -> Iterator[str]:
    """The name of an example whose objects are in the cluster."""
    name = str(request.param)
    _make_namespaces(kubectl, {each["metadata"].get("namespace", "default") for each in _objects(name)})
    kubectl("create", "-f", str(EXAMPLES / name))
    yield name
    kubectl("delete", "-f", str(EXAMPLES / name), "--ignore-not-found")


@pytest.mark.parametrize("example", NAMES, indirect=True)
def test_examples_are_accepted_and_kept(example: str, kubectl: Kubectl) -> None:
    """What is returned is what was given: directives, argsPatch and all else; with the defaults of the API."""
    found: set[str] = set()
    for given in _objects(example):
        kind, metadata = f"{given['kind']}.{given['apiVersion'].rpartition('/')[0]}", given["metadata"]
        where = ("-n", metadata.get("namespace", "default"))
        got = kubectl.json("get", kind.rstrip("."), metadata["name"], *where)
        for key in ("spec", "data"):
            found |= {f"{given['kind']} {each}" for each in _differences(given.get(key), got.get(key), key)}
        labels = ("labels", "annotations")
        assert all(metadata.get(key) == got["metadata"].get(key) for key in labels)
    assert sorted(found) == DEFAULTS.get(example)


DEFAULTS: dict[str, list[str]] = {}
