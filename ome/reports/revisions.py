"""A stored revision held against what OME writes: what can be wrong with one, and with several.

Source: OME "kubectl ome runtime" reference (v1.3), the revision codes of ISSUE, and "Runtime revisions
and pinning". A hash can be checked when it is OME's own or upstream's over the bytes as they are; any other
may be right or wrong, and consistency is then `Unknown`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from ome.api import ClusterServingRuntime, ObjectRef, ServingRuntime
from ome.merging.canonical import written_hash
from ome.merging.schema import RUNTIME_SPEC
from ome.merging.strategic import merge
from ome.reports.evidence import Source, timestamp
from ome.resolution.revisions import (
    CONTROLLER,
    SHORT,
    revision_name_fits,
)
from ome.snapshot import Revision, Snapshot

__all__ = [
    "RUNTIME_KINDS",
    "Observed",
    "created_at",
    "observe",
    "relation",
    "revision_ref",
    "revision_source",
]

RUNTIME_KINDS: Final = (ServingRuntime.KIND, ClusterServingRuntime.KIND)
_SHORT_HASH: Final = re.compile(rf"[0-9a-f]{{{SHORT}}}")


@dataclass(frozen=True, slots=True)
class Observed:
    """One stored revision. `digest` is the full hash of its content ("" when it can't be read), `hash` the
    short one that it goes by ("" when that is known to be wrong), `codes` what is wrong with it."""

    revision: Revision
    digest: str
    hash: str
    codes: frozenset[str]
    is_verified: bool = True

    @property
    def is_disabled(self) -> bool:
        """Whether the stored spec is disabled."""
        return self.revision.spec.get("disabled") is True

    @property
    def consistency(self) -> str:
        """Consistent with what OME writes, Inconsistent, or Unknown."""
        if self.codes:
            return "Inconsistent"
        return "Consistent" if self.is_verified else "Unknown"

    @property
    def issues(self) -> list[str]:
        """Everything to be told about it, by code."""
        return sorted({*self.codes, *(["RevisionDisabled"] if self.is_disabled else [])})

    @property
    def source(self) -> ObjectRef | None:
        """The runtime that its labels name."""
        labels = self.revision
        if not labels.runtime:
            return None
        kind = labels.kind if labels.kind in RUNTIME_KINDS else "Unknown"
        return ObjectRef(kind, labels.namespace, labels.runtime)


def observe(
    revisions: Iterable[Revision], runtime: str, owners: frozenset[tuple[str, str]]
) -> list[Observed]:
    """Every revision held against what OME writes, and against the others.

    `runtime` is the runtime that they should be of, `owners` its possible kinds and namespaces (none: any).
    """
    found = [_observe(each, runtime, owners) for each in revisions]
    extra: list[set[str]] = [set() for _ in found]
    for same in _groups([each.revision.name for each in found]):
        kinds = [
            [other for other in same if found[other].revision == found[at].revision] for at in same
        ]
        for at, equals in zip(same, kinds, strict=True):
            if len(equals) > 1:
                extra[at].add("DuplicateRevision")
            if len(equals) < len(same):
                extra[at].add("ConflictingRevision")
    for same in _groups([each.digest for each in found]):
        for at in same:
            extra[at].add("DuplicateRevisionContent")
    for same in _groups([each.digest[:SHORT] for each in found]):
        if len({found[at].digest for at in same}) > 1:
            for at in same:
                extra[at].add("RevisionHashCollision")
    return [replace(each, codes=each.codes | more) for each, more in zip(found, extra, strict=True)]


def _groups(keys: Sequence[str]) -> list[list[int]]:
    """The positions that share a key with others; an empty key is shared with none."""
    places: dict[str, list[int]] = defaultdict(list)
    for at, key in enumerate(keys):
        if key:
            places[key].append(at)
    return [same for same in places.values() if len(same) > 1]


def _observe(revision: Revision, runtime: str, owners: frozenset[tuple[str, str]]) -> Observed:
    codes = set()
    if revision.created_by != CONTROLLER:
        codes.add("RevisionNotOMEManaged")
    if revision.runtime != runtime or not _is_owned(revision, owners):
        codes.add("RevisionSourceMismatch")
    if type(revision.ordinal) is not int or revision.ordinal != 1:
        codes.add("RevisionOrdinalUnexpected")
    if not revision.is_readable:
        return Observed(revision, "", "", frozenset({*codes, "RevisionPayloadMalformed"}))
    if revision.has_unknown_fields or merge({}, revision.spec, RUNTIME_SPEC) != revision.spec:
        codes.add("RevisionPayloadNonCanonical")
    digest = revision.digest
    computed = {digest[:SHORT], written_hash(revision.spec)[:SHORT]}
    label, suffix = revision.hash, revision.name.rpartition("-")[2]
    shown, is_verified = label, label in computed
    fitting = computed if is_verified or suffix in computed else {label}
    if not _SHORT_HASH.fullmatch(label):
        codes.add("RevisionHashInvalid")
        shown, fitting = "", {suffix}
    elif not is_verified and suffix in computed:
        codes.add("RevisionHashMismatch")
        shown = ""
    if _is_source(revision) and not (suffix in fitting and _has_derived_form(revision)):
        codes.add("RevisionNameMismatch")
    return Observed(revision, digest, shown, frozenset(codes), is_verified)


def _is_source(revision: Revision) -> bool:
    """Whether the labels name a runtime: a namespace goes with a ServingRuntime, and only with it."""
    if not revision.runtime or revision.kind not in RUNTIME_KINDS:
        return False
    return (revision.kind == ServingRuntime.KIND) == bool(revision.namespace)


def _is_owned(revision: Revision, owners: frozenset[tuple[str, str]]) -> bool:
    return _is_source(revision) and (not owners or (revision.kind, revision.namespace) in owners)


def _has_derived_form(revision: Revision) -> bool:
    """Whether the name is made from the labels: by the kind that a service declares, so that one of a
    ServingRuntime may stand under either kind's form."""
    return any(
        revision_name_fits(revision.name, kind, revision.namespace, revision.runtime)
        for kind in {revision.kind, ClusterServingRuntime.KIND}
    )


def relation(left: str, right: str) -> str:
    """How two full hashes compare: Equal, Different, Ambiguous (only the short forms are), Unknown."""
    if not left or not right:
        return "Unknown"
    if left == right:
        return "Equal"
    return "Ambiguous" if left[:SHORT] == right[:SHORT] else "Different"


def created_at(revision: Revision) -> datetime | None:
    """When it was created; None when that isn't told in RFC 3339."""
    try:
        found = datetime.fromisoformat(revision.created) if revision.created else None
    except ValueError:
        return None
    return found if found is not None and found.tzinfo is not None else None


def revision_ref(snapshot: Snapshot, name: str, found: Revision | None) -> dict[str, Any]:
    """A revision as JSON data, with what is known of it when it is there."""
    data: dict[str, Any] = {"namespace": snapshot.ome_namespace, "name": name}
    if found is not None and found.uid:
        data["uid"] = found.uid
    if found is not None and (created := created_at(found)) is not None:
        data["createdAt"] = timestamp(created)
    return data


def revision_source(snapshot: Snapshot, name: str, uid: str = "", reason: str = "") -> Source:
    """A revision among a report's sources."""
    return Source(ObjectRef("ControllerRevision", snapshot.ome_namespace, name), uid, 0, reason)
