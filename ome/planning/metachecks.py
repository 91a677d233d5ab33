"""What Kubernetes would refuse in the labels and annotations of rendered objects."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ome.api import Problem

__all__ = ["check_metadata", "check_node_selector"]

_NAME: Final = re.compile(r"(?=.{1,63}$)[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?", re.ASCII)
_PREFIX: Final = re.compile(
    r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII
)


def check_metadata(
    labels: Mapping[str, Any], annotations: Mapping[str, Any], path: str
) -> Iterator[Problem]:
    """Every label and annotation that isn't one; `path` is the component they are of."""
    for what, values in (("labels", labels), ("annotations", annotations)):
        for key, value in values.items():
            at = f"{path}: {what}[{key}]"
            if not _is_key(key):
                text = f'"{key}" is no key of {what}'
                yield Problem("MetadataKeyInvalid", text, path=at, fix="write name or prefix/name")
            elif what == "labels" and value and not _NAME.fullmatch(value):
                text = f'"{value}" is no label value'
                fix = (
                    "use at most 63 letters, digits, dashes, dots and underscores, or an annotation"
                )
                yield Problem("LabelValueInvalid", text, path=at, fix=fix)


def check_node_selector(pod: Mapping[str, Any]) -> Iterator[Problem]:
    """Labels that a pod asks of nodes, and the keys of its tolerations."""
    for key, value in (pod.get("nodeSelector") or {}).items():
        at = f"nodeSelector[{key}]"
        if not _is_key(key):
            text = f'"{key}" is no key of labels'
            yield Problem("MetadataKeyInvalid", text, path=at, fix="write name or prefix/name")
        elif value and not _NAME.fullmatch(str(value)):
            text = f'"{value}" is no label value, so no node has it'
            yield Problem("LabelValueInvalid", text, path=at, fix="write the value that nodes have")
    for place, each in enumerate(pod.get("tolerations") or ()):
        key = each.get("key")
        if key and not _is_key(str(key)):
            text = f'"{key}" is no key of a taint'
            path = f"tolerations[{place}].key"
            yield Problem("MetadataKeyInvalid", text, path=path, fix="write name or prefix/name")


def _is_key(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    return bool(_NAME.fullmatch(name)) and (not slash or bool(_PREFIX.fullmatch(prefix)))
