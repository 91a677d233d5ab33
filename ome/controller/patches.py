"""Patches of OME's own objects: a status, by the smallest JSON merge patch (RFC 7386) that makes one of
another, and a finalizer that nobody needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ome.api import ApiObject
from ome.controller.client import Api, ApiError
from ome.controller.resources import BY_KIND

__all__ = ["drop_finalizer", "merge_patch", "status_patch", "write_status"]


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


async def write_status(
    api: Api, item: ApiObject, status: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Give an object a status. Returns what the API server made of it, None where there was nothing to
    do or the object is gone. Raises ApiError, Unreachable and NotLeading."""
    patch = status_patch(item.raw, status)
    if patch is None:
        return None
    resource = BY_KIND[item.KIND]
    try:
        return await api.patch(resource, item.namespace, item.name, patch, subresource="status")
    except ApiError as error:
        if error.is_missing:
            return None
        raise


async def drop_finalizer(api: Api, item: ApiObject, finalizer: str) -> None:
    """Remove a finalizer, if an object has it. Raises ApiError, Unreachable and NotLeading."""
    finalizers = item.metadata.finalizers or []
    if finalizer not in finalizers:
        return
    path = f"/metadata/finalizers/{finalizers.index(finalizer)}"
    body = [{"op": "test", "path": path, "value": finalizer}, {"op": "remove", "path": path}]
    try:
        await api.patch(BY_KIND[item.KIND], item.namespace, item.name, body)
    except ApiError as error:
        if not error.is_missing:
            raise
