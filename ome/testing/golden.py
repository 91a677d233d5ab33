"""Golden cases: whole manifests in, parts of the rendered objects out.

A case is a folder with `input.yaml` and `expect.yaml`. What is expected holds `objects` (of maps every
listed key is equal, of lists with a key every listed item is there, anything else is equal),
`absentObjects`, `absentFields`, and `error` with the component that is held and a part of the message.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import yaml

from ome.engines.engines import Engines
from ome.planning.plan import Hold
from ome.planning.planner import plan
from ome.snapshot import Snapshot
from ome.sources import InstalledPresets, load

__all__ = ["check_case"]

_KEYS: Final = {
    "containers": "name",
    "env": "name",
    "volumes": "name",
    "ports": "containerPort",
    "volumeMounts": "mountPath",
}
_ITEM_KEYS: Final = ("name", "containerPort", "port", "mountPath")


def check_case(case: Path, engines: Engines | None = None) -> None:
    """Render a case, with the presets of some engines, and compare. Raises AssertionError."""
    presets = InstalledPresets(engines or Engines())
    path = case / "input.yaml"
    loaded = load([(path.name, path.read_bytes())], presets=presets)
    snapshot = Snapshot.of(loaded.objects, config=loaded.config, presets=presets)
    (service,) = snapshot.services()
    rendered = plan(snapshot, service, Engines())
    expected: dict[str, Any] = yaml.safe_load((case / "expect.yaml").read_text())
    objects = {(item["kind"], item["metadata"]["name"]): item for item in rendered.objects()}
    for item in expected.get("objects", ()):
        found = objects.get((item["kind"], item["metadata"]["name"]))
        assert found is not None, f"no {item['kind']} {item['metadata']['name']}"
        _assert_has(found, item, item["kind"])
    for absent in expected.get("absentObjects", ()):
        names = [name for kind, name in objects if kind == absent["kind"]]
        assert not names if absent["name"] == "*" else absent["name"] not in names
    for absent in expected.get("absentFields", ()):
        found = objects[absent["kind"], absent["name"]]
        assert _find(found, absent["path"]) is None, absent["path"]
    if "error" in expected:
        action = rendered.actions[expected["error"]["component"]]
        assert isinstance(action, Hold)
        assert expected["error"]["contains"] in action.problems[0].message
    else:
        assert not list(rendered.refusals())


def _assert_has(actual: Any, expected: Any, path: str) -> None:
    """Maps: every listed key is equal. Keyed lists: every listed item is there. Others: equal."""
    if isinstance(expected, dict):
        assert isinstance(actual, dict), f"{path}: {actual!r} is no object"
        for key, value in expected.items():
            assert key in actual, f"{path}.{key} is missing"
            _assert_has(actual[key], value, f"{path}.{key}")
        return
    key = _key_of(path, actual)
    if isinstance(expected, list) and key:
        by_key = {item[key]: item for item in actual}
        for item in expected:
            assert item[key] in by_key, f"{path}: no item with {key} {item[key]}"
            _assert_has(by_key[item[key]], item, f"{path}[{item[key]}]")
        return
    assert actual == expected, path


def _key_of(path: str, items: Any) -> str | None:
    if not (isinstance(items, list) and items and isinstance(items[0], dict)):
        return None
    key = _KEYS.get(path.rpartition(".")[2])
    return key if key is None or key in items[0] else "port"


def _find(value: Any, path: str) -> Any:
    """What stands at an `absentFields` path; None when nothing does."""
    for plain, bracket in re.findall(r"([^.\[\]]+)|\[([^\]]*)\]", path):
        if isinstance(value, list):
            matches = (i for i in value if str(bracket) in map(str, (i.get(k) for k in _ITEM_KEYS)))
            value = next(matches, None)
        elif isinstance(value, dict):
            value = value.get(plain or bracket.strip('"'))
        if value is None:
            return None
    return value
