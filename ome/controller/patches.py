"""JSON merge patches (RFC 7386) of a status: the smallest that makes one of another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["merge_patch", "status_patch"]


def merge_patch(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """What turns `old` into `new`; empty when they are equal. Lists are replaced whole."""
    patch: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            if inner := merge_patch(before, value):
                patch[key] = inner
        elif key not in old or not _same(before, value):
            patch[key] = value
    return patch


def _same(old: Any, new: Any) -> bool:
    """Whether two values are the same JSON. Python takes `True` for 1."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        return old.keys() == new.keys() and all(_same(old[key], new[key]) for key in new)
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(map(_same, old, new))
    return isinstance(old, bool) == isinstance(new, bool) and bool(old == new)


def status_patch(raw: Mapping[str, Any], status: Mapping[str, Any]) -> dict[str, Any] | None:
    """The patch that gives an object a status, refused when the object is another one by then; None
    when it has that status already."""
    old = raw.get("status")
    patch = merge_patch(old, status) if isinstance(old, Mapping) else dict(status)
    if not patch:
        return None
    metadata = raw["metadata"]
    precondition = {name: metadata[name] for name in ("uid", "resourceVersion") if name in metadata}
    return {"metadata": precondition, "status": patch}
