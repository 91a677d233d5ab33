"""Runtime revisions: snapshots of a runtime's effective spec, and which of them are kept.

A revision's name carries 8 hex digits of the spec's hash (`ome.merging.canonical`). Revisions of
upstream's controller carry another hash; specs are therefore compared by content, never by name. Source:
OME "Runtime revisions and pinning" document (v1.3).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from ome.snapshot import Effective, Revision

__all__ = [
    "CONTROLLER",
    "SHORT",
    "Collected",
    "collect_revisions",
    "in_use",
    "revision_name",
    "revision_name_fits",
    "revision_object",
]

Json = Mapping[str, Any]

SHORT: Final = 8
KEPT_NEWEST: Final = 10
GRACE: Final = timedelta(hours=24)
CREATED_BY: Final = "ome.io/created-by"
CONTROLLER: Final = "ome-controller"
ELIGIBLE_SINCE: Final = "ome.io/gc-eligible-since"


def revision_name(declared_kind: str, namespace: str, runtime: str, digest: str) -> str:
    """The name of a revision: by the kind that the service *declares*, wherever it resolved."""
    return f"{_prefix(declared_kind, namespace, runtime)}-{digest[:SHORT]}"


def revision_name_fits(name: str, declared_kind: str, namespace: str, runtime: str) -> bool:
    """Whether a name has the form of a revision of this runtime."""
    prefix = re.escape(_prefix(declared_kind, namespace, runtime))
    return re.fullmatch(rf"{prefix}-[0-9a-f]{{{SHORT}}}", name) is not None


def _prefix(declared_kind: str, namespace: str, runtime: str) -> str:
    if declared_kind == "ServingRuntime":
        return f"r-{namespace}-{runtime}"
    return f"cr-{runtime}"


def revision_object(name: str, live: Effective, ome_namespace: str) -> dict[str, Any]:
    """The ControllerRevision that holds a runtime's effective spec."""
    runtime = live.chain[-1]
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": name,
            "namespace": ome_namespace,
            "labels": {
                "ome.io/runtime-of": runtime.name,
                "ome.io/runtime-of-kind": runtime.KIND,
                "ome.io/runtime-of-namespace": runtime.namespace,
                "ome.io/revision-hash": live.digest[:SHORT],
            },
            "annotations": {CREATED_BY: CONTROLLER},
        },
        "data": dict(live.spec),
        "revision": 1,
    }


def in_use(services: Iterable[Json]) -> frozenset[str]:
    """The names of the revisions that services name or are pinned to, whether or not they follow them
    at the moment: none of them may be deleted. Services are raw, and may be unreadable otherwise."""
    found: set[str] = set()
    for service in services:
        spec, status = _mapping(service.get("spec")), _mapping(service.get("status"))
        names = (_mapping(spec.get("runtime")).get("revision"), status.get("pinnedRevisionName"))
        found.update(name for name in names if isinstance(name, str) and name)
    return frozenset(found)


def _mapping(value: Any) -> Json:
    return value if isinstance(value, Mapping) else {}


@dataclass(frozen=True, slots=True)
class Collected:
    """What garbage collection does to one revision: Mark, Unmark or Delete."""

    revision: str
    action: str
    since: datetime | None = None


def collect_revisions(
    revisions: Sequence[Revision],
    in_use: frozenset[str],
    now: datetime,
    *,
    keep: int = KEPT_NEWEST,
    grace: timedelta = GRACE,
) -> Iterator[Collected]:
    """Garbage collection as a function of what there is and of the clock.

    Of each runtime, by kind, namespace and name, the newest `keep` stay, and so does every revision that a
    service names or is pinned to. Others are marked, and deleted once they were marked for `grace`; a mark
    that can't be read is made again, and one that is kept after all loses its mark. Revisions of others are
    never touched.
    """
    groups: dict[tuple[str, str, str], list[Revision]] = {}
    for each in revisions:
        if each.created_by == CONTROLLER:
            groups.setdefault(each.of, []).append(each)
    for key in sorted(groups):
        newest = sorted(
            groups[key], key=lambda r: (_time(r.created) or _LONG_AGO, r.name), reverse=True
        )
        for place, each in enumerate(newest):
            decided = _collect(each, place < keep or each.name in in_use, now, grace)
            if decided is not None:
                yield decided


def _collect(revision: Revision, kept: bool, now: datetime, grace: timedelta) -> Collected | None:
    mark = revision.annotations.get(ELIGIBLE_SINCE)
    if kept:
        return Collected(revision.name, "Unmark") if mark is not None else None
    since = _time(mark)
    if since is None:
        return Collected(revision.name, "Mark", now)
    return Collected(revision.name, "Delete") if now - since >= grace else None


_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)


def _time(text: str | None) -> datetime | None:
    try:
        found = datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
    return found if found is not None and found.tzinfo is not None else None
