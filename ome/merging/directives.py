"""Carrying out directives: what a layer removes, done before the ordinary merge.

A directive is a removal from the base, so the merge itself needs to know nothing about it: the base
loses what the overlay's directives name, the overlay loses its directives, and the two merge as ever.
No directive is left in either, whether or not it found something. Source: Kubernetes' strategic merge
patch (apimachinery, `strategicpatch`); what differs stands in docs/merging.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ome.api import ApiObject, ObjectRef, Problem
from ome.api.directives import DELETE, DELETE_FROM, PATCH, REPLACE, RETAIN_KEYS, is_directive
from ome.api.parsing import suggestion
from ome.api.path import field_path
from ome.merging.schema import OBJECT, RUNTIME_SPEC, Keyed, Node, Struct, Whole, naming

__all__ = ["Report", "Unmatched", "own_spec", "problems_of", "remove", "settled"]

Json = Mapping[str, Any]
_Path = tuple[int | str, ...]
# A value's two sides after its directives were carried out: the base and the overlay; None is absent.
_Sides = tuple[Any, Any]

_FIX: Final = "remove it, or correct what it names"


@dataclass(frozen=True, slots=True)
class Unmatched:
    """A directive that found nothing: its path in the overlay, why, and what to do."""

    path: _Path
    message: str
    fix: str = _FIX


Report = list[Unmatched]


def remove(
    base: Json, overlay: Json, schema: Struct = OBJECT, report: Report | None = None
) -> tuple[Json, Json]:
    """The base without what the directives of `overlay` remove, and the overlay without directives.

    Appends to `report` the directives that found nothing. Never changes its inputs; parts without
    directives are shared.
    """
    left, kept = _object(base, overlay, schema, (), report if report is not None else [])
    return left or {}, kept or {}


def settled(value: Json, schema: Struct = OBJECT) -> Json:
    """What an overlay sets by itself: without its directives, which have nothing to act on."""
    return remove({}, value, schema)[1]


def own_spec(runtime: ApiObject) -> Json:
    """A runtime's spec as it is without what the runtime inherits."""
    spec: Json = runtime.raw.get("spec") or {}
    return settled(spec, RUNTIME_SPEC) if runtime.has_directives else spec


def problems_of(report: Report, ref: ObjectRef, at: _Path = ("spec",)) -> list[Problem]:
    """A warning for every directive that found nothing: `ref` is the layer, `at` where it was merged."""
    return [
        Problem("DirectiveUnmatched", each.message, ref, field_path((*at, *each.path)), each.fix)
        for each in report
    ]


def _value(old: Any, new: Any, node: Node | None, path: _Path, report: Report) -> _Sides:
    if isinstance(new, dict):
        return _object(old, new, node, path, report)
    if isinstance(new, list):
        if isinstance(node, Keyed):
            return _keyed(old, new, node, path, report)
        kept = [
            _value(None, item, None, (*path, at), [])[1]
            for at, item in enumerate(new)
            if not _is_special(item)
        ]
        return old, _shared(kept, new)
    return old, new


def _object(old: Any, new: Json, node: Node | None, path: _Path, report: Report) -> _Sides:
    action = new.get(PATCH)
    if action in (DELETE, REPLACE):
        if old is None:
            text = f"$patch: {action} finds nothing to {action}: no lower layer sets it"
            report.append(Unmatched((*path, PATCH), text))
        return None, None if action == DELETE else _fields(None, new, node, path, report)[1]
    left = old if isinstance(old, dict) and not isinstance(node, Whole) else None
    after, kept = _fields(left, new, node, path, report)
    # What held nothing but directives sets nothing: it must not come to be an empty object.
    return (old if left is None else after), (kept if kept or not new else None)


def _shared(kept: list[Any], new: list[Any]) -> list[Any] | None:
    """The overlay's own list where nothing in it changed; None where nothing but directives was."""
    if len(kept) == len(new) and all(a is b for a, b in zip(kept, new, strict=True)):
        return new
    return kept or None


def _fields(
    old: Json | None, new: Json, node: Node | None, path: _Path, report: Report
) -> tuple[Json | None, Json]:
    """The fields of an object, one by one, once it's clear that it isn't removed or replaced."""
    left = _retained(old, new, path, report)
    nodes = node.fields if isinstance(node, Struct) else {}
    kept: dict[str, Any] = {}
    for name, item in new.items():
        if is_directive(name):
            if name.startswith(DELETE_FROM):
                left = _without_words(left, name, item, path, report)
            continue
        before = None if left is None else left.get(name)
        after, value = _value(before, item, nodes.get(name), (*path, name), report)
        if left is not None and after is not before:
            left = _with(left, name, after)
        if value is not None or item is None:
            kept[name] = value
    is_same = len(kept) == len(new) and all(kept[name] is new[name] for name in new)
    return left, new if is_same else kept


def _with(left: Json, name: str, value: Any) -> Json:
    """The object with one field changed, or gone."""
    rest = {key: item for key, item in left.items() if key != name or value is not None}
    return rest if value is None else {**rest, name: value}


def _retained(old: Json | None, new: Json, path: _Path, report: Report) -> Json | None:
    names = new.get(RETAIN_KEYS)
    if not isinstance(names, list):
        return old
    if old is None:
        text = "$retainKeys finds nothing to remove: no lower layer sets the object"
        report.append(Unmatched((*path, RETAIN_KEYS), text))
        return None
    gone = [name for name in old if name not in names]
    for name in names:
        if name not in old and name not in new and (fix := suggestion(name, gone)):
            text = f"$retainKeys keeps {name}, which no layer sets"
            report.append(Unmatched((*path, RETAIN_KEYS), text, fix))
    return {name: item for name, item in old.items() if name in names}


def _without_words(
    left: Json | None, name: str, words: Any, path: _Path, report: Report
) -> Json | None:
    """`$deleteFromPrimitiveList/<field>`: the field's list without the words, wherever they stand."""
    field = name.removeprefix(DELETE_FROM)
    old = left.get(field) if left is not None else None
    present = old if isinstance(old, list) else []
    words = words if isinstance(words, list) else []
    for word in words:
        if word not in present:
            text = f"{name} finds no {word} in the lower layers' {field}"
            report.append(Unmatched((*path, name), text, suggestion(word, _texts(present)) or _FIX))
    if left is None or not any(word in words for word in present):
        return left
    return _with(left, field, [word for word in present if word not in words] or None)


def _texts(values: list[Any]) -> list[str]:
    return [str(value) for value in values]


def _is_special(item: Any) -> bool:
    return isinstance(item, dict) and item.get(PATCH) is not None


def _keyed(old: Any, new: list[Any], node: Keyed, path: _Path, report: Report) -> _Sides:
    """A list with a merge key: items to delete, an item that replaces the list, and the others."""
    before = old if isinstance(old, list) else []
    left = _left_items(before, new, node, path, report)
    plain = [(at, item) for at, item in enumerate(new) if not _is_special(item)]
    left, kept = _plain_items(left, plain, node, path, report)
    is_same = len(left) == len(before) and all(a is b for a, b in zip(left, before, strict=True))
    return (old if is_same else left or None), _shared(kept, new)


def _left_items(
    before: list[Any], new: list[Any], node: Keyed, path: _Path, report: Report
) -> list[Any]:
    """The items of lower layers that neither a deletion nor a replacement of the list takes."""
    special = [(at, item) for at, item in enumerate(new) if _is_special(item)]
    for at, item in special:
        if item[PATCH] == REPLACE:
            if not before:
                text = f"$patch: replace finds nothing to replace: no lower layer sets {path[-1]}"
                report.append(Unmatched((*path, at, PATCH), text))
            return []
    left = before
    for at, item in special:
        gone = _matches(left, item, node)
        if not gone:
            known = [str(each.get(node.key)) for each in left if isinstance(each, dict)]
            name = item.get(node.key)
            text = (
                f"$patch: delete finds nothing to delete: lower layers have no {path[-1]} item with "
                f"{node.key} {name}"
            )
            fix = suggestion(name, known) or _FIX
            report.append(Unmatched((*path, at, PATCH), text, fix))
        left = [each for each in left if not any(each is one for one in gone)]
    return left


def _matches(items: list[Any], wanted: Json, node: Keyed) -> list[Any]:
    """The items that a deletion names: by key, and by the second key that it has or that is implied."""
    key = wanted.get(node.key)
    found = [each for each in items if isinstance(each, dict) and each.get(node.key) == key]
    second = (wanted.get(node.second) or node.default) if node.second else ""
    if not second:
        return found
    return [each for each in found if (each.get(node.second) or node.default) == second]


def _plain_items(
    left: list[Any], plain: list[tuple[int, Any]], node: Keyed, path: _Path, report: Report
) -> tuple[list[Any], list[Any]]:
    """The items that merge or are added, with the directives inside them carried out."""
    items = [item for _, item in plain]
    merges = all(isinstance(each, dict) and node.key in each for each in (*left, *items))
    name_of = naming(left, items, node) if merges else None
    places = {name_of(each): at for at, each in reversed(list(enumerate(left)))} if name_of else {}
    kept: list[Any] = []
    for at, item in plain:
        place = places.get(name_of(item)) if name_of else None
        partner = None if place is None else left[place]
        after, value = _value(partner, item, node.item, (*path, at), report)
        if place is not None and partner is not None and after is not partner:
            keys = {name: partner[name] for name in (node.key, node.second) if name in partner}
            left = [*left[:place], {**keys, **after}, *left[place + 1 :]]
        # An item of directives that found nothing is no item to add.
        only_key = isinstance(value, dict) and value.keys() <= {node.key, node.second}
        if not (value is None or (partner is None and only_key and value != item)):
            kept.append(value)
    return left, kept
