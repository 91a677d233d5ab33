"""The one canonical form of a spec, and the hash over it that names revisions.

The form is OME's own and never changes: it is independent of key order, of what the API server defaults,
and of values that say nothing. Source: OME "Runtime revisions and pinning" document (v1.3), which leaves
the hashed bytes open.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from ome.merging.strategic import is_unset

__all__ = ["content_hash", "written_hash"]

Json = Mapping[str, Any]

# What the API server adds to a runtime's spec, by the field that holds it.
_DEFAULTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "modelFormat": {"operator": "Equal", "weight": 1},
    "modelFramework": {"operator": "Equal", "weight": 1},
    "ports": {"protocol": "TCP"},
    "grpc": {"service": ""},
    "scalingPolicy": {"mode": "Independent"},
    "autoscalerPolicyRef": {"kind": "AutoscalerPolicy"},
}


def content_hash(spec: Json) -> str:
    """64 hex digits that identify what a spec says."""
    text = json.dumps(
        _canonical(spec, ""), sort_keys=True, separators=(",", ":"), ensure_ascii=False
    )
    return hashlib.sha256(text.encode()).hexdigest()


def written_hash(spec: Json) -> str:
    """64 hex digits over a spec as it is written, in the bytes of upstream's controller: its revisions
    carry this hash, as long as whoever handed them on kept the order of their fields."""
    text = json.dumps(spec, separators=(",", ":"), ensure_ascii=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return hashlib.sha256(text.encode()).hexdigest()


def _canonical(value: Any, field: str) -> Any:
    """The value without what says nothing: unset values and the API server's defaults. An empty
    object stays: it can have a meaning of its own."""
    if isinstance(value, Mapping):
        defaults = _DEFAULTS.get(field, {})
        return {
            key: _canonical(item, key)
            for key, item in value.items()
            if not (is_unset(item) and item != {}) and defaults.get(key, _NOTHING) != item
        }
    if isinstance(value, list):
        return [_canonical(item, field) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


_NOTHING: Final = object()
