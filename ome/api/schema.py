"""The structural schema of each kind, derived from its model.

What the models declare is the one description of the API: the CRDs and the check for unknown fields
both read it here, so that a field exists in all three places or in none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any, TypeAlias

from ome.api.argspatch import ARGS_PATCH, ARGS_PATCH_SCHEMA
from ome.api.parsing import KINDS
from ome.api.shapes import POD_PART

__all__ = ["PRESERVE", "Node", "kind_schema", "pod_definitions", "resolve"]

Node: TypeAlias = dict[str, Any]
PRESERVE = "x-kubernetes-preserve-unknown-fields"
_KEPT = (
    "enum",
    "format",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minimum",
    "pattern",
    "required",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    PRESERVE,
    "x-kubernetes-validations",
)


@cache
def pod_definitions() -> Mapping[str, Node]:
    """Kubernetes' definitions of pod-shaped parts, by name; do not change them.

    Containers have OME's own `argsPatch` besides, which never reaches a pod.
    """
    text = resources.files("ome.api").joinpath("podschema.json").read_text(encoding="utf-8")
    definitions: dict[str, Node] = json.loads(text)["definitions"]
    for name in ("Container", "EphemeralContainer"):
        definitions[name]["properties"][ARGS_PATCH] = ARGS_PATCH_SCHEMA
    return definitions


def resolve(node: Node) -> Node:
    """The node itself, or the definition or field of a definition that it refers to.

    A reference is `{"$ref": "Container"}` or, for a field, `{"$ref": "PodSpec.volumes"}`.
    """
    while reference := node.get("$ref"):
        name, _, field = reference.partition(".")
        node = pod_definitions()[name]
        if field:
            node = node["properties"][field]
    return node


@cache
def kind_schema(kind: str) -> Node:
    """The schema of a whole object of `kind`; do not change it.

    Pod-shaped parts are references for `resolve`. An InferenceService has no ephemeral containers
    (spec: api.md 1). Raises `KeyError` for a kind that is not ours.
    """
    source = KINDS[kind].model_json_schema(by_alias=True, ref_template="{model}")
    schema = _clean(source, source.get("$defs", {}))
    if kind == "InferenceService":
        _drop_ephemeral(schema)
    return schema


def _clean(node: Node, shared: Mapping[str, Node]) -> Node:
    """A node of pydantic's JSON schema as a node of a structural schema."""
    node = _merged(node, shared)
    if part := node.get(POD_PART):
        return {"$ref": part}
    clean = {key: node[key] for key in _KEPT if key in node}
    if node.get("default") is not None:
        clean["default"] = node["default"]
    if "x-kubernetes-int-or-string" in node:
        return {"anyOf": [{"type": "integer"}, {"type": "string"}], **clean}
    clean["type"] = node["type"]
    if "items" in node:
        clean["items"] = _clean(node["items"], shared)
    if "properties" in node:
        clean["properties"] = {
            name: _clean(each, shared) for name, each in node["properties"].items()
        }
    elif isinstance(node.get("additionalProperties"), dict):
        clean["additionalProperties"] = _clean(node["additionalProperties"], shared)
    return clean


def _merged(node: Node, shared: Mapping[str, Node]) -> Node:
    """The node with its reference followed and the null alternative of an optional field gone."""
    if "$ref" in node:
        rest = {key: value for key, value in node.items() if key != "$ref"}
        return _merged({**shared[node["$ref"]], **rest}, shared)
    choices = [each for each in node.get("anyOf", []) if each.get("type") != "null"]
    if len(choices) == 1:
        rest = {key: value for key, value in node.items() if key != "anyOf"}
        return _merged({**choices[0], **rest}, shared)
    return node


def _drop_ephemeral(node: Node) -> None:
    node.get("properties", {}).pop("ephemeralContainers", None)
    for each in node.get("properties", {}).values():
        _drop_ephemeral(each)
