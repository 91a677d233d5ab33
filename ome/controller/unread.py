"""Objects of OME's kinds that can't be read: told, and otherwise as if they weren't there.

The CustomResourceDefinitions let through what only OME knows to be wrong, such as a directive in the wrong
place. A service of this kind keeps what runs of it, and its status says what is wrong with it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ome.api import InferenceService, InvalidObject, ObjectRef, Problem, parse
from ome.planning.context import COMPONENTS

__all__ = ["Unread"]

Json = dict[str, Any]
_log: Final = logging.getLogger("ome.controller.world")

_SPEC_FIELD: Final = re.compile(r"spec\.(\w+)")


@dataclass(frozen=True, slots=True)
class _Entry:
    uid: str
    version: str
    problems: tuple[Problem, ...]
    service: InferenceService | None


class Unread:
    """The objects that can't be read, each with its problems."""

    def __init__(self) -> None:
        self._entries: dict[ObjectRef, _Entry] = {}

    def __iter__(self) -> Iterator[ObjectRef]:
        return iter(self._entries)

    def __contains__(self, ref: object) -> bool:
        return ref in self._entries

    def problems(self, ref: ObjectRef) -> tuple[Problem, ...]:
        """What is wrong with an object; nothing for one that can be read."""
        entry = self._entries.get(ref)
        return entry.problems if entry else ()

    def service(self, ref: ObjectRef) -> InferenceService | None:
        """A service as far as it can be read: enough for its status. None where even that can't be."""
        entry = self._entries.get(ref)
        return entry.service if entry else None

    def put(self, ref: ObjectRef, raw: Json, problems: tuple[Problem, ...]) -> bool:
        """An object that can't be read. Each problem is logged once. Returns whether it is news."""
        version = raw["metadata"].get("resourceVersion") or ""
        known = self._entries.get(ref)
        if known is not None and known.version == version:
            return False
        if known is None or known.problems != problems:
            for problem in problems:
                fields = {"object": str(ref), "code": problem.code}
                _log.error(f"unreadable object: {problem}", extra={"fields": fields})
        is_service = ref.kind == InferenceService.KIND
        service = _legible(raw, problems) if is_service else None
        self._entries[ref] = _Entry(raw["metadata"].get("uid") or "", version, problems, service)
        return True

    def wrote(self, ref: ObjectRef, raw: Json) -> None:
        """What the API server made of our own write of a status; nothing, if a later state is known."""
        known, metadata = self._entries.get(ref), raw["metadata"]
        if known is None or known.uid != metadata.get("uid"):
            return
        if int(known.version or 0) < int(metadata["resourceVersion"]):
            self.put(ref, raw, known.problems)

    def remove(self, ref: ObjectRef) -> bool:
        """An object is gone, or can be read. Returns whether it was here."""
        return self._entries.pop(ref, None) is not None


def _legible(raw: Json, problems: tuple[Problem, ...]) -> InferenceService | None:
    """The service without the fields of its spec that have a fault; its components stay declared."""
    spec = raw.get("spec")
    kept = dict(spec) if isinstance(spec, Mapping) else {}
    if any(problem.path == "spec" for problem in problems):
        kept = {name: {} for name in COMPONENTS if name in kept}
    for problem in problems:
        if found := _SPEC_FIELD.match(problem.path):
            kept.pop(found[1], None)
            if found[1] in COMPONENTS:
                kept[found[1]] = {}
    try:
        found_service = parse({**raw, "spec": kept})
    except (InvalidObject, RecursionError):
        return None
    return found_service if isinstance(found_service, InferenceService) else None
