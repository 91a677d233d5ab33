"""Who owns which fields of an object, by its `managedFields`.

`fieldsV1` of an entry is a tree (Kubernetes server-side apply document): `f:` before a field, `k:` before
the keys of a list's item, `v:` before a set's value, `.` for the object itself, and nothing below what is
owned whole.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ome.controller.client import MANAGER

__all__ = ["MENDER", "covers", "foreign_paths", "our_fields", "spec_of_others"]

Json = dict[str, Any]
Fields = Mapping[str, Any]

# Owns, for a moment, what takes the place of somebody else's fields (mending.py).
MENDER: Final = f"{MANAGER}-mending"
# What the API server fills into the keys of a list's items.
_DEFAULTS: Final = {"protocol": "TCP"}
_NOT_APPLIED: Final = frozenset({"apiVersion", "kind", "status"})
_OWN_METADATA: Final = ("labels", "annotations", "ownerReferences")


def our_fields(metadata: Json) -> Json:
    """What our manager has applied."""
    for entry in metadata.get("managedFields") or ():
        if _is_ours(entry) and not entry.get("subresource"):
            found: Json = entry.get("fieldsV1") or {}
            return found
    return {}


def spec_of_others(metadata: Json) -> list[tuple[str, str, Json]]:
    """What each other manager owns of an object's spec, its count left out: manager, time, fields."""
    found = []
    for entry in metadata.get("managedFields") or ():
        if _is_ours(entry) or entry.get("manager") == MENDER:
            continue
        fields = dict((entry.get("fieldsV1") or {}).get("f:spec") or {})
        fields.pop("f:replicas", None)
        if fields:
            found.append((entry.get("manager") or "", entry.get("time") or "", fields))
    return found


def foreign_paths(metadata: Json, *within: str) -> tuple[str, ...]:
    """What others own of an object's spec, or of a field of it, and we don't: paths such as
    `containers[main].args`, each as high as can be."""
    ours = _below(our_fields(metadata).get("f:spec") or {}, within)
    found: dict[str, None] = {}
    for _, _, fields in spec_of_others(metadata):
        found.update(dict.fromkeys(_beyond(_below(fields, within), ours, "")))
    return tuple(found)


def _is_ours(entry: Json) -> bool:
    return bool(entry.get("manager") == MANAGER and entry.get("operation") == "Apply")


def _below(fields: Fields, names: tuple[str, ...]) -> Fields:
    for name in names:
        fields = fields.get(f"f:{name}") or {}
    return fields


def _beyond(theirs: Fields, ours: Fields, path: str) -> Iterator[str]:
    for key, child in theirs.items():
        if key == ".":
            continue
        at = path + _step(key)
        if key not in ours:
            yield at.removeprefix(".")
        elif child and ours[key]:
            yield from _beyond(child, ours[key], at)


def _step(key: str) -> str:
    kind, _, text = key.partition(":")
    if kind == "f":
        return f".{text}"
    value = json.loads(text)
    parts = value.values() if isinstance(value, dict) else [value]
    return f"[{'/'.join(map(str, parts))}]"


def covers(fields: Fields, desired: Json) -> bool:
    """Whether a manager with these fields owns every field of what is desired."""
    metadata = desired.get("metadata") or {}
    wanted = {key: value for key, value in desired.items() if key not in _NOT_APPLIED}
    wanted["metadata"] = {key: metadata[key] for key in _OWN_METADATA if metadata.get(key)}
    return _covers(fields, wanted)


def _covers(fields: Fields, value: Any) -> bool:
    if not fields:
        return True
    if isinstance(value, dict):
        return all(_has(fields, f"f:{key}", child) for key, child in value.items())
    if isinstance(value, list):
        return all(_covers_item(fields, item) for item in value)
    return True


def _has(fields: Fields, key: str, value: Any) -> bool:
    child = fields.get(key)
    if child is None:
        return value is None or value == {} or value == []
    return _covers(child, value)


def _covers_item(fields: Fields, item: Any) -> bool:
    if not isinstance(item, dict):
        return any(key.startswith("v:") and json.loads(key[2:]) == item for key in fields)
    for key, child in fields.items():
        if key.startswith("k:"):
            keys = json.loads(key[2:])
            if all(item.get(name, _DEFAULTS.get(name)) == value for name, value in keys.items()):
                return _covers(child, item)
    return False
