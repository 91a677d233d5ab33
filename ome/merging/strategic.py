"""The strategic merge: one engine for presets, inheritance and runtime plus service.

The overlay's *set* fields win; what it leaves unset (`null`, `""`, `[]`, `{}`) changes nothing: an
overlay removes with directives only. Inputs are never changed and unchanged parts are shared with
them, so a merge costs about what the overlay holds. Source of the rules: OME runtime inheritance
document (v1.3), section "What merges"; the order of keyed lists is Kubernetes' own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ome.api.directives import has_directives
from ome.merging.directives import Report, remove
from ome.merging.schema import OBJECT, Joined, Keyed, Node, StringMap, Struct, Whole, naming

__all__ = ["Json", "is_unset", "merge", "merge_chain", "merge_settled"]

Json = Mapping[str, Any]


def is_unset(value: Any) -> bool:
    """Whether a value in an overlay says nothing: `null`, `""`, `[]` or `{}`."""
    return value is None or (not value and isinstance(value, str | list | dict))


def merge(
    base: Json, overlay: Json, schema: Struct = OBJECT, report: Report | None = None
) -> dict[str, Any]:
    """Merge an overlay over `base`, as `schema` says: first what its directives remove, then its set
    fields.

    Returns `base` itself where the overlay changes nothing; never changes its inputs. Appends to
    `report` the directives that found nothing. The result holds no directive if `base` holds none.
    """
    if has_directives(overlay):
        base, overlay = remove(base, overlay, schema, report)
    return merge_settled(base, overlay, schema)


def merge_settled(base: Json, overlay: Json, schema: Struct = OBJECT) -> dict[str, Any]:
    """The merge of an overlay that is known to hold no directive."""
    merged: dict[str, Any] | None = None
    fields = schema.fields
    for name, value in overlay.items():
        old = base.get(name)
        if old is None:
            # An empty object can have a meaning of its own (`emptyDir: {}`): kept where there is none.
            if value is None or (is_unset(value) and value != {}) or _is_zero(schema, name, value):
                continue
            new = value
        elif is_unset(value) or _is_zero(schema, name, value):
            continue
        else:
            new = _merge_value(old, value, fields.get(name))
            if new is old:
                continue
        if merged is None:
            merged = dict(base)
        merged[name] = new
    if schema.edits:
        merged = _without_old_edits(base, overlay, merged, schema)
    return merged if merged is not None else base  # type: ignore[return-value]


def merge_chain(layers: Iterable[Json], schema: Struct = OBJECT) -> dict[str, Any]:
    """Merge layers from the weakest to the strongest, each with its directives."""
    merged: dict[str, Any] = {}
    for layer in layers:
        merged = merge(merged, layer, schema)
    return merged


def _without_old_edits(
    base: Json, overlay: Json, merged: dict[str, Any] | None, schema: Struct
) -> dict[str, Any] | None:
    """Setting a field drops what lower layers wanted edited in it."""
    for name, edits in schema.edits.items():
        if base.get(edits) and not is_unset(overlay.get(name)):
            own = overlay.get(edits)
            rest = {key: value for key, value in (merged or base).items() if key != edits}
            merged = rest if is_unset(own) else {**rest, edits: own}
    return merged


def _is_zero(schema: Struct, name: str, value: Any) -> bool:
    return not value and name in schema.zero_is_unset and isinstance(value, bool | int)


def _merge_value(old: Any, new: Any, node: Node | None) -> Any:
    if isinstance(new, dict):
        if not isinstance(old, dict) or isinstance(node, Whole):
            return new
        if isinstance(node, StringMap):
            return _merge_map(old, new)
        return merge_settled(old, new, node if isinstance(node, Struct) else OBJECT)
    if isinstance(node, Keyed) and isinstance(old, list) and isinstance(new, list):
        return _merge_keyed(old, new, node)
    if isinstance(node, Joined) and isinstance(old, list) and isinstance(new, list):
        return [*old, *new]
    return new


def _merge_map(old: Json, new: Json) -> dict[str, Any]:
    added = {key: value for key, value in new.items() if value is not None}
    return {**old, **added}


def _merge_keyed(old: list[Any], new: list[Any], node: Keyed) -> list[Any]:
    """Match items by key. Overlay items keep their order and base-only items theirs; an item new in
    the overlay comes after every base-only item (the order Kubernetes' strategic merge gives)."""
    key = node.key
    if not all(isinstance(item, dict) and key in item for item in (*old, *new)):
        return new
    name_of = naming(old, new, node)
    base = {name_of(item): (place, item) for place, item in reversed(list(enumerate(old)))}
    overlay: dict[Any, Any] = {}
    for item in new:
        name = name_of(item)
        if name in overlay:
            overlay[name] = merge_settled(overlay[name], item, node.item)
        elif name in base:
            overlay[name] = merge_settled(base[name][1], item, node.item)
        else:
            overlay[name] = item
    left = [
        (place, item)
        for place, item in enumerate(old)
        if name_of(item) not in overlay or base[name_of(item)][0] != place
    ]
    merged: list[Any] = []
    taken = 0
    for name, item in overlay.items():
        limit = base[name][0] if name in base else len(old)
        while taken < len(left) and left[taken][0] < limit:
            merged.append(left[taken][1])
            taken += 1
        merged.append(item)
    merged.extend(item for _, item in left[taken:])
    return merged
