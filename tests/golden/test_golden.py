"""Golden cases: whole manifests in, parts of the rendered objects out."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from ome.engines.discovery import discover
from ome.engines.engines import Engines
from ome.planning.plan import Hold, Plan
from ome.planning.planner import plan
from ome.snapshot import Snapshot
from ome.sources import InstalledPresets, load

CASES = Path(__file__).parent / "cases"

PRESETS = InstalledPresets(discover())

KEYS = {
    "containers": "name",
    "env": "name",
    "volumes": "name",
    "ports": "containerPort",
    "volumeMounts": "mountPath",
}


def case_names() -> list[str]:
    return sorted(path.name for path in CASES.iterdir())


def render(case: str) -> Plan:
    path = CASES / case / "input.yaml"
    loaded = load([(path.name, path.read_bytes())], presets=PRESETS)
    snapshot = Snapshot.of(loaded.objects, config=loaded.config, presets=PRESETS)
    (service,) = snapshot.services()
    return plan(snapshot, service, Engines())


def expectation(case: str) -> dict[str, Any]:
    data: dict[str, Any] = yaml.safe_load((CASES / case / "expect.yaml").read_text())
    return data


def assert_has(actual: Any, expected: Any, path: str) -> None:
    """Maps: every listed key is equal. Keyed lists: every listed item is there. Others: equal."""
    if isinstance(expected, dict):
        assert isinstance(actual, dict), f"{path}: {actual!r} is no object"
        for key, value in expected.items():
            assert key in actual, f"{path}.{key} is missing"
            assert_has(actual[key], value, f"{path}.{key}")
        return
    key = key_of(path, actual)
    if isinstance(expected, list) and key:
        by_key = {item[key]: item for item in actual}
        for item in expected:
            assert item[key] in by_key, f"{path}: no item with {key} {item[key]}"
            assert_has(by_key[item[key]], item, f"{path}[{item[key]}]")
        return
    assert actual == expected, path


def key_of(path: str, items: Any) -> str | None:
    if not (isinstance(items, list) and items and isinstance(items[0], dict)):
        return None
    key = KEYS.get(path.rpartition(".")[2])
    return key if key is None or key in items[0] else "port"


def find(value: Any, path: str) -> Any:
    """What stands at an `absentFields` path; None when nothing does."""
    for plain, bracket in re.findall(r"([^.\[\]]+)|\[([^\]]*)\]", path):
        if isinstance(value, list):
            matches = (i for i in value if str(bracket) in map(str, (i.get(k) for k in ITEM_KEYS)))
            value = next(matches, None)
        elif isinstance(value, dict):
            value = value.get(plain or bracket.strip('"'))
        if value is None:
            return None
    return value


ITEM_KEYS = ("name", "containerPort", "port", "mountPath")


@pytest.mark.parametrize("case", case_names())
def test_golden_case(case: str) -> None:
    expected = expectation(case)
    rendered = render(case)
    objects = {(item["kind"], item["metadata"]["name"]): item for item in rendered.objects()}
    for item in expected.get("objects", ()):
        found = objects.get((item["kind"], item["metadata"]["name"]))
        assert found is not None, f"no {item['kind']} {item['metadata']['name']}"
        assert_has(found, item, item["kind"])
    for absent in expected.get("absentObjects", ()):
        names = [name for kind, name in objects if kind == absent["kind"]]
        assert not names if absent["name"] == "*" else absent["name"] not in names
    for absent in expected.get("absentFields", ()):
        found = objects[absent["kind"], absent["name"]]
        assert find(found, absent["path"]) is None, absent["path"]
    if "error" in expected:
        action = rendered.actions[expected["error"]["component"]]
        assert isinstance(action, Hold)
        assert expected["error"]["contains"] in action.problems[0].message
    else:
        assert not list(rendered.refusals())


@pytest.mark.parametrize("case", case_names())
def test_every_case_says_why(case: str) -> None:
    assert (CASES / case / "why.txt").read_text().strip()
