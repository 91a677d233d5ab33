"""The status that a service has already, as far as it can be written again.

A status may come from another controller, or another version of the CRD. What the CRD's schema refuses is
left out, since the API server would refuse the whole status with it; unknown fields stay.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ome.api import InferenceService
from ome.api.schema import Node, kind_schema
from ome.planning.live import is_time

__all__ = ["conditions_by_type", "settled_status", "stored_conditions", "stored_status"]

Json = dict[str, Any]

_REFUSED: Final = object()


def stored_status(service: InferenceService) -> Json:
    """The status of a service, without what the schema refuses."""
    return settled_status(service.raw.get("status"))


def stored_conditions(service: InferenceService) -> dict[str, Json]:
    """The conditions of a service's status by type, without what the schema refuses."""
    status = service.raw.get("status")
    conditions = status.get("conditions") if isinstance(status, dict) else None
    return conditions_by_type(settled_status({"conditions": conditions})) if conditions else {}


def settled_status(status: Any) -> Json:
    """A status without what the schema refuses; empty for what is no object. The input isn't changed."""
    node = kind_schema(InferenceService.KIND)["properties"]["status"]
    found = _settled(status, node)
    return found if isinstance(found, dict) else {}


def conditions_by_type(status: Mapping[str, Any]) -> dict[str, Json]:
    """The conditions of a status that can be read, by type; of two with one type the first."""
    found: dict[str, Json] = {}
    conditions = status.get("conditions")
    for each in conditions if isinstance(conditions, list) else ():
        if isinstance(each, dict) and isinstance(each.get("type"), str):
            found.setdefault(each["type"], each)
    return found


def _settled(value: Any, node: Node) -> Any:
    """The value, less what a node of the schema refuses; `_REFUSED` when nothing of it can stay."""
    return _READERS[node["type"]](value, node)


def _object(value: Any, node: Node) -> Any:
    if not isinstance(value, dict):
        return _REFUSED
    known = node.get("properties", {})
    others = node.get("additionalProperties")
    kept = {}
    for key, item in value.items():
        inner = known.get(key, others)
        settled = item if inner is None else _settled(item, inner)
        if settled is not _REFUSED:
            kept[key] = settled
    return kept if kept.keys() >= set(node.get("required", ())) else _REFUSED


def _list(value: Any, node: Node) -> Any:
    if not isinstance(value, list):
        return _REFUSED
    settled = [_settled(item, node["items"]) for item in value]
    return [item for item in settled if item is not _REFUSED]


def _string(value: Any, node: Node) -> Any:
    if not isinstance(value, str) or value not in node.get("enum", (value,)):
        return _REFUSED
    is_fit = node.get("format") != "date-time" or is_time(value)
    return value if is_fit else _REFUSED


def _integer(value: Any, node: Node) -> Any:
    bits = 32 if node.get("format") == "int32" else 64
    known = isinstance(value, int) and not isinstance(value, bool)
    return value if known and -(2 ** (bits - 1)) <= value < 2 ** (bits - 1) else _REFUSED


_READERS: Final[Mapping[str, Callable[[Any, Node], Any]]] = {
    "object": _object,
    "array": _list,
    "string": _string,
    "integer": _integer,
}
