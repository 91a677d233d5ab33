"""Kubernetes' strategic-merge directives as they stand in manifests: where they may, and their faults.

A directive is a key that says what a layer removes from those below it: `$patch`, `$retainKeys` and
`$deleteFromPrimitiveList/<field>`. They work wherever layers merge: in a runtime's spec and in a
service's components. Source: Kubernetes' strategic merge patch (apimachinery, `strategicpatch`);
docs/merging.md for what is offered.
"""

from __future__ import annotations

import json
import marshal
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

__all__ = [
    "DELETE",
    "DELETE_FROM",
    "MERGE_KEYS",
    "PATCH",
    "REPLACE",
    "RETAIN_KEYS",
    "WHOLE",
    "directive_faults",
    "has_directives",
    "is_directive",
    "without_directives",
]

PATCH: Final = "$patch"
DELETE: Final = "delete"
REPLACE: Final = "replace"
RETAIN_KEYS: Final = "$retainKeys"
DELETE_FROM: Final = "$deleteFromPrimitiveList/"
_ORDER: Final = "$setElementOrder/"

MERGE_KEYS: Final[Mapping[str, str]] = {
    "containers": "name",
    "env": "name",
    "ephemeralContainers": "name",
    "hostAliases": "ip",
    "imagePullSecrets": "name",
    "initContainers": "name",
    "ports": "containerPort",
    "resourceClaims": "name",
    "schedulingGates": "name",
    "topologySpreadConstraints": "topologyKey",
    "volumeDevices": "devicePath",
    "volumeMounts": "mountPath",
    "volumes": "name",
}
"""The lists that merge item by item, with the field that tells their items apart."""

_SECOND_KEYS: Final = {"ports": "protocol", "topologySpreadConstraints": "whenUnsatisfiable"}
_MAPS: Final = frozenset(
    "annotations config labels limits nodeSelector overhead requests servicePortAppProtocols".split()
)
WHOLE: Final = frozenset({"autoscaler", "scalingPolicy"})
"""The blocks that are replaced as one."""
_COMPONENTS: Final = ("engine", "decoder", "router")

# In the bytes of a value: a dollar sign that is no reference such as $(MODEL_PATH).
_CANDIDATE: Final = re.compile(rb"\$[A-Za-z]")

# What the API server puts into an object, by the field that holds it.
_DEFAULTED: Final = {
    "autoscalerPolicyRef": ("kind",),
    "grpc": ("service",),
    "modelFormat": ("operator", "weight"),
    "modelFramework": ("operator", "weight"),
    "scalingPolicy": ("mode",),
}

_Path = tuple[int | str, ...]
_Fault = tuple[_Path, str, str]


def is_directive(name: object) -> bool:
    """Whether a key is one of Kubernetes' directives, offered here or not."""
    return (
        isinstance(name, str)
        and name[:1] == "$"
        and (name in (PATCH, RETAIN_KEYS) or name.startswith((DELETE_FROM, _ORDER)))
    )


def has_directives(value: Any) -> bool:
    """Whether a JSON value holds a key that starts like a directive, at any depth.

    Most manifests have none, so their bytes are looked at first: that costs a fraction of a walk.
    """
    try:
        if _CANDIDATE.search(marshal.dumps(value)) is None:
            return False
    except ValueError:  # a date of YAML's, say: parsing tells about it
        pass
    return _holds_directive(value)


def _holds_directive(value: Any) -> bool:
    if isinstance(value, dict):
        for name, item in value.items():
            if isinstance(name, str) and name[:1] == "$":
                return True
            if isinstance(item, dict | list) and _holds_directive(item):
                return True
    elif isinstance(value, list):
        for item in value:
            if isinstance(item, dict | list) and _holds_directive(item):
                return True
    return False


def without_directives(value: Any) -> Any:
    """A JSON value as what it sets by itself: without directives and what exists only to remove."""
    if isinstance(value, dict):
        return {
            name: without_directives(item)
            for name, item in value.items()
            if not is_directive(name) and not _removes(item)
        }
    if isinstance(value, list):
        return [
            without_directives(item)
            for item in value
            if not (isinstance(item, dict) and item.get(PATCH) is not None)
        ]
    return value


def _removes(value: Any) -> bool:
    return isinstance(value, dict) and value.get(PATCH) == DELETE


def directive_faults(kind: str, raw: Mapping[str, Any]) -> Iterator[_Fault]:
    """What is wrong with the directives of an object: the path, a message and a fix.

    Looks at the whole `spec`; metadata and status are never merged.
    """
    spec = raw.get("spec")
    if not isinstance(spec, dict):
        return
    if kind.endswith("ServingRuntime"):
        yield from _in_object(spec, ("spec",))
        return
    for name, value in spec.items():
        path = ("spec", name)
        if kind == "InferenceService" and name in _COMPONENTS and isinstance(value, dict):
            yield from _in_object(value, path)
        elif is_directive(name):
            yield path, f"{name} can't stand here: nothing merges here", "remove it"
        else:
            yield from _misplaced(value, path, "nothing merges here")


def _in_object(value: Mapping[str, Any], path: _Path) -> Iterator[_Fault]:
    """The faults of an object that merges field by field."""
    is_map = path[-1] in _MAPS
    for name, item in value.items():
        if isinstance(name, str) and name[:1] == "$" and item is not None:
            yield from _of_directive(name, item, value, path, is_map=is_map)
    if value.get(PATCH) == DELETE:
        if not isinstance(path[-1], int):  # an item of a list has its key beside it
            yield from _beside_delete([name for name in value if name != PATCH], path)
        return
    for name, item in value.items():
        if isinstance(name, str) and name[:1] == "$":
            continue
        at = (*path, name)
        if isinstance(item, dict):
            yield from _in_whole(item, at) if name in WHOLE else _in_object(item, at)
        elif isinstance(item, list) and name in MERGE_KEYS:
            yield from _in_keyed(item, at, name)
        else:
            why = "this list is replaced as a whole: no item of it merges"
            yield from _misplaced(item, at, why)


def _beside_delete(names: list[str], path: _Path) -> Iterator[_Fault]:
    """What stands beside `$patch: delete` would be lost without a word. The API server's defaults are
    nobody's."""
    names = [name for name in names if name not in _DEFAULTED.get(str(path[-1]), ())]
    if names:
        text = f"$patch: delete drops what stands beside it, {names[0]} too"
        fix = "write $patch: replace to hold this and nothing else, or remove it"
        yield (*path, PATCH), text, fix


def _in_whole(value: Mapping[str, Any], path: _Path) -> Iterator[_Fault]:
    """The faults of a block that is replaced as one: it takes `$patch`, and nothing inside does."""
    if PATCH in value:
        yield from _of_patch(value[PATCH], (*path, PATCH))
    rest = {name: item for name, item in value.items() if name != PATCH}
    yield from _misplaced(rest, path, f"{path[-1]} is replaced as one: nothing in it merges")


def _in_keyed(items: list[Any], path: _Path, field: str) -> Iterator[_Fault]:
    key = MERGE_KEYS[field]
    keys = {key, _SECOND_KEYS.get(field, key), PATCH}
    for at, item in enumerate(items):
        if not isinstance(item, dict):
            continue
        yield from _in_object(item, (*path, at))
        action = item.get(PATCH)
        where = (*path, at, PATCH)
        if action == DELETE and item.get(key) in (None, "", 0):
            text = f"$patch: delete in an item of {field} needs the {key} of what it deletes"
            yield where, text, f"add {key}"
        elif action == DELETE:
            yield from _beside_delete([name for name in item if name not in keys], (*path, at))
        elif action == REPLACE and (extra := [name for name in item if name not in keys]):
            text = (
                "$patch: replace in an item replaces the whole list and drops the item, "
                f"{extra[0]} too"
            )
            fix = (
                "write `- $patch: replace` as an item of its own, or list in $retainKeys what this "
                "item keeps"
            )
            yield where, text, fix


def _of_directive(
    name: str, item: Any, value: Mapping[str, Any], path: _Path, *, is_map: bool
) -> Iterator[_Fault]:
    at = (*path, name)
    if name == PATCH:
        yield from _of_patch(item, at)
    elif name == RETAIN_KEYS or name.startswith(DELETE_FROM):
        if is_map:
            text = f"{name} can't stand in a map of plain values"
            yield at, text, "write $patch: replace with the entries to keep"
        elif name == RETAIN_KEYS:
            yield from _of_retain_keys(item, value, at)
        else:
            yield from _of_deletion(item, name.removeprefix(DELETE_FROM), at)
    elif name.startswith(_ORDER):
        text = "$setElementOrder isn't offered: a merged list has the order of its layers"
        yield at, text, "remove it"
    else:
        known = f"{PATCH}, {RETAIN_KEYS} and {DELETE_FROM}<field>"
        yield at, f"{name} is no directive", f"the directives are {known}"


def _of_patch(item: Any, at: _Path) -> Iterator[_Fault]:
    if item not in (DELETE, REPLACE):
        text = f"$patch must be delete or replace, not {_shown(item)}"
        yield (
            at,
            text,
            "delete takes away what lower layers set, replace takes only what stands here",
        )


def _of_retain_keys(item: Any, value: Mapping[str, Any], at: _Path) -> Iterator[_Fault]:
    if not _is_list_of(item, str):
        text = f"$retainKeys must be a list of field names, not {_shown(item)}"
        yield at, text, "write it as $retainKeys: [name, hostPath]"
        return
    for name, each in value.items():
        is_field = not (isinstance(name, str) and name[:1] == "$")
        if is_field and each is not None and name not in item:
            text = f"$retainKeys leaves out {name}, which the object sets"
            yield at, text, f"add {name} to the list"


def _of_deletion(item: Any, field: str, at: _Path) -> Iterator[_Fault]:
    if not field or field in MERGE_KEYS:
        fix = f"write an item with its {MERGE_KEYS[field]} and $patch: delete" if field else ""
        text = f"{field} is no list of plain values" if field else "it names no field"
        yield at, text, fix or f"write {DELETE_FROM}args"
    elif not _is_list_of(item, str | int | float):
        text = f"{DELETE_FROM}{field} must be a list of plain values, not {_shown(item)}"
        yield at, text, "list the values to delete"


def _misplaced(value: Any, path: _Path, why: str) -> Iterator[_Fault]:
    """Directives where nothing merges."""
    steps: Iterator[tuple[int | str, Any]] = iter(())
    if isinstance(value, dict):
        steps = iter(value.items())
    elif isinstance(value, list):
        steps = iter(enumerate(value))
    for step, item in steps:
        if is_directive(step):
            fix = "remove it, or write the whole list" if "list" in why else "remove it"
            yield (*path, step), f"{step} can't stand here: {why}", fix
        else:
            yield from _misplaced(item, (*path, step), why)


def _is_list_of(value: Any, kind: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, kind) for each in value)


def _shown(value: Any) -> str:
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list with other items"
    return json.dumps(value, ensure_ascii=False)
