"""Fields that the API server would drop without a word.

A misspelt field is the commonest fault of a manifest and the hardest to see: structural schemas
prune it silently. The check reads the raw object against the schema, pod-shaped parts included.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from ome.api.base import ApiObject
from ome.api.directives import is_directive
from ome.api.parsing import suggestion
from ome.api.path import field_path
from ome.api.problems import Problem
from ome.api.schema import PRESERVE, Node, kind_schema, resolve

__all__ = ["unknown_fields"]

MESSAGE: Final = "unknown field, the API server drops it"
_Step = int | str


def unknown_fields(obj: ApiObject) -> list[Problem]:
    """The fields of `obj` that its kind does not have, in the order they are written.

    Each is a problem with code `UnknownField`, the full path and, if a known field is near, a fix.
    Free-form maps, `Raw` fields, blocks whose fields are kept unread, directives (`parse` checks them)
    and `status` are passed over (spec: api.md 1).
    """
    schema = kind_schema(obj.KIND)["properties"]
    found: list[tuple[tuple[_Step, ...], str]] = []
    for name, value in obj.raw.items():
        if name in schema:
            if name != "status" and isinstance(value, dict | list):
                _walk(value, schema[name], (name,), found)
        else:
            found.append(((name,), suggestion(name, schema)))
    return [
        Problem("UnknownField", MESSAGE, ref=obj.ref, path=field_path(path), fix=fix)
        for path, fix in found
    ]


def _walk(
    value: dict[str, Any] | list[Any],
    node: Node,
    path: tuple[_Step, ...],
    found: list[tuple[tuple[_Step, ...], str]],
) -> None:
    node = resolve(node)
    if isinstance(value, list):
        if item := node.get("items"):
            _walk_all(enumerate(value), item, path, found)
        return
    fields = node.get("properties")
    if fields is None:
        if each := node.get("additionalProperties"):
            _walk_all(value.items(), each, path, found)
        return
    for name, child in value.items():
        if name not in fields:
            if PRESERVE not in node and not is_directive(name):
                found.append(((*path, name), suggestion(name, fields)))
        elif isinstance(child, dict | list):
            _walk(child, fields[name], (*path, name), found)


def _walk_all(
    entries: Iterable[tuple[_Step, Any]],
    node: Node,
    path: tuple[_Step, ...],
    found: list[tuple[tuple[_Step, ...], str]],
) -> None:
    for step, child in entries:
        if isinstance(child, dict | list):
            _walk(child, node, (*path, step), found)
