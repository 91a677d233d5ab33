"""Opening a CRD's schema for directives: nothing of them is pruned, and nothing is refused for what an
object that only removes leaves out.

Objects that merge keep unknown fields, since `$patch` must not stand among the properties of a CRD:
Helm and kubectl update CRDs with strategic merge patches, which would take it for a directive of their
own (docs/adr/0007-directives.md). What is misspelt is OME's to tell (`ome.api.unknown`).
"""

from __future__ import annotations

from typing import Any, Final

from ome.api.directives import MERGE_KEYS, PATCH, WHOLE
from ome.api.quantities import QUANTITY_PATTERN

__all__ = ["Inline", "open_for_directives"]

Node = dict[str, Any]
_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
_KEYS: Final = "x-kubernetes-list-map-keys"
_QUANTITY_OR_PATCH: Final = f"^(delete|replace)$|{QUANTITY_PATTERN}"


class Inline(list[Any]):
    """A list that stands on one line in YAML."""


def open_for_directives(node: Node) -> None:
    """Open an expanded object schema and what merges below it, in place."""
    if "properties" not in node:
        _open_map(node)
        return
    node[_PRESERVE] = True
    if required := node.pop("required", None):
        node["anyOf"] = Inline([{"required": required}, {"required": [PATCH]}])
    for name, child in node["properties"].items():
        if name in WHOLE:
            _open_whole(child)
        elif child.get("type") == "object":
            open_for_directives(child)
        elif child.get("type") == "array" and name in MERGE_KEYS:
            _open_items(child)


def _open_whole(node: Node) -> None:
    """A block that is replaced as one takes `$patch` itself, and nothing inside does."""
    node[_PRESERVE] = True
    if required := node.pop("required", None):
        node["anyOf"] = Inline([{"required": required}, {"required": [PATCH]}])


def _open_map(node: Node) -> None:
    """A map of plain values has room for `$patch` if its values may be words."""
    value = node.get("additionalProperties", {})
    if value.get("pattern") == QUANTITY_PATTERN:
        node["additionalProperties"] = {**value, "pattern": _QUANTITY_OR_PATCH}


def _open_items(node: Node) -> None:
    """The items of a keyed list: one that replaces the list has no key.

    The API server wants the keys of such lists required or defaulted, so they default to nothing, which
    only an item with `$patch` may have.
    """
    item = node["items"]
    open_for_directives(item)
    alternatives = item.get("anyOf")
    if alternatives is None:
        return
    needed = alternatives[0]["required"]
    for key in node[_KEYS]:
        if key in needed:
            item["properties"][key] = dict(item["properties"][key])
            is_number = item["properties"][key]["type"] == "integer"
            item["properties"][key]["default"] = 0 if is_number else ""
            least = {"minimum": 1} if is_number else {"minLength": 1}
            alternatives[0].setdefault("properties", {})[key] = least
