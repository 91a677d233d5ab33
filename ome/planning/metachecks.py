"""What Kubernetes would refuse in the labels and annotations of rendered objects."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ome.api import Problem

__all__ = ["check_metadata"]

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


def _is_key(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    return bool(_NAME.fullmatch(name)) and (not slash or bool(_PREFIX.fullmatch(prefix)))
