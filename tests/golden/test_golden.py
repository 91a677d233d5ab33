"""Golden cases: whole manifests in, parts of the rendered objects out."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from ome.engines.engines import Engines
from ome.planning.plan import Hold, Plan
from ome.planning.planner import plan
from ome.snapshot import Snapshot
from ome.sources import load

CASES = Path(__file__).parent / "cases"

# Cases whose rules aren't built yet, with the part of OME that brings them.
NOT_YET = {"17": "the sglang-pd preset"}

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
    loaded = load([(path.name, path.read_bytes())])
    snapshot = Snapshot.of(loaded.objects, config=loaded.config)
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


@pytest.mark.parametrize("case", [name for name in case_names() if name[:2] not in NOT_YET])
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


def test_the_cases_that_are_left_out_exist_and_do_not_pass() -> None:
    left_out = [name for name in case_names() if name[:2] in NOT_YET]
    assert len(left_out) == len(NOT_YET)
    for case in left_out:
        try:
            test_golden_case(case)
        except Exception:
            continue
        pytest.fail(f"golden case {case} passes: take it out of NOT_YET")


@pytest.mark.parametrize("case", case_names())
def test_every_case_says_why(case: str) -> None:
    assert (CASES / case / "why.txt").read_text().strip()
