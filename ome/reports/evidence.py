"""What the runtime reports share: what was collected, how it is told, and the envelope around it.

Source: OME "kubectl ome runtime" reference (v1.3). A report names objects and codes; it never holds
specs, tokens or messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from ome.api import API_VERSION, ApiObject, ObjectRef
from ome.snapshot import Snapshot

__all__ = [
    "FROM_FILES",
    "PARTIAL",
    "STALE",
    "TRUNCATED",
    "UNAVAILABLE",
    "Evidence",
    "Issue",
    "Listing",
    "Source",
    "envelope",
    "reference",
    "sorted_issues",
    "timestamp",
]

REPORT_VERSION: Final = "cli.ome.io/v1alpha1"

# Warnings that follow from what is incomplete.
PARTIAL: Final = "PartialData"
UNAVAILABLE: Final = "SourceUnavailable"
TRUNCATED: Final = "Truncated"
STALE: Final = "StaleEvidence"


@dataclass(frozen=True, slots=True)
class Listing:
    """How listing one kind went: `status` is Complete, Truncated or Unavailable; `pages` came back of
    `requested` (None: as many)."""

    status: str = "Complete"
    pages: int = 1
    requested: int | None = None

    @property
    def asked(self) -> int:
        """The number of list requests."""
        return self.pages if self.requested is None else self.requested

    @property
    def warnings(self) -> set[str]:
        """The warnings of a list that isn't complete."""
        code = {"Truncated": TRUNCATED, "Unavailable": UNAVAILABLE}.get(self.status)
        return {PARTIAL, code} if code else set()


@dataclass(frozen=True, slots=True)
class Evidence:
    """How the snapshot was collected: lists by kind, and reads of single objects that failed, by reason
    (Forbidden, UnsupportedAPI or Unreadable). Files are complete."""

    listings: Mapping[str, Listing] = field(default_factory=dict)
    failed: Mapping[ObjectRef, str] = field(default_factory=dict)

    def listing(self, kind: str) -> Listing:
        """How listing a kind went."""
        return self.listings.get(kind, Listing())


FROM_FILES: Final = Evidence()


@dataclass(frozen=True, slots=True, order=True)
class Issue:
    """A stable code, with the revision that it is about."""

    code: str
    revision: str = ""

    def __str__(self) -> str:
        return f"{self.code}({self.revision})" if self.revision else self.code

    def as_json(self) -> dict[str, str]:
        """The issue as JSON data."""
        return {"code": self.code, **({"revision": self.revision} if self.revision else {})}


def sorted_issues(issues: Iterable[Issue]) -> tuple[Issue, ...]:
    """Every issue once, by code and revision."""
    return tuple(sorted(set(issues)))


@dataclass(frozen=True, slots=True, order=True)
class Source:
    """An object that a report is made from, or (with a reason) one that couldn't be had."""

    ref: ObjectRef
    uid: str = ""
    generation: int = 0
    reason: str = ""

    @classmethod
    def of(cls, item: ApiObject) -> Source:
        """An object that was read."""
        return cls(item.ref, item.uid, item.generation)

    def as_json(self, collected: str) -> dict[str, Any]:
        """The source as JSON data."""
        return _present(
            {
                "kind": self.ref.kind,
                "namespace": self.ref.namespace,
                "name": self.ref.name,
                "uid": self.uid,
                "generation": self.generation,
                "evidence": "Unavailable" if self.reason else "Observed",
                "collectedAt": collected,
                "unavailableReason": self.reason,
            }
        )


def reference(ref: ObjectRef, item: ApiObject | None = None) -> dict[str, Any]:
    """A runtime as JSON data, with uid and generation when it is there."""
    return _present(
        {
            "apiVersion": API_VERSION,
            "kind": ref.kind,
            "namespace": ref.namespace,
            "name": ref.name,
            "uid": item.uid if item else "",
            "generation": item.generation if item else 0,
        }
    )


def _present(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value not in ("", 0, None)}


def envelope(
    kind: str,
    snapshot: Snapshot,
    of: ObjectRef,
    content: Mapping[str, Any],
    *,
    sources: Iterable[Source] = (),
    warnings: Iterable[str] = (),
) -> dict[str, Any]:
    """A report as JSON data; `of` is the object that it was asked about."""
    collected = timestamp(snapshot.now)
    where = {"namespace": of.namespace} if of.namespace else {}
    return {
        "apiVersion": REPORT_VERSION,
        "kind": kind,
        "metadata": {**where, "name": of.name},
        "collectedAt": collected,
        "sources": [source.as_json(collected) for source in sorted(set(sources))],
        "content": dict(content),
        "warnings": [{"code": code} for code in sorted(set(warnings))],
    }


def timestamp(moment: datetime) -> str:
    """A moment in RFC 3339, to the second, in UTC."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
