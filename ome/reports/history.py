"""The stored revisions of the runtime behind a service, and the part that each plays.

Source: OME "kubectl ome runtime" reference (v1.3), "history".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from ome.api import InferenceService
from ome.reports.effective import EffectiveReport, effective, owners
from ome.reports.evidence import (
    FROM_FILES,
    PARTIAL,
    TRUNCATED,
    Evidence,
    Issue,
    Listing,
    envelope,
    reference,
    sorted_issues,
)
from ome.reports.revisions import (
    Observed,
    created_at,
    observe,
    relation,
    revision_ref,
    revision_source,
)
from ome.snapshot import Snapshot

__all__ = ["Entry", "HistoryReport", "history"]

_RELATIONS: Final = {"Equal": "MatchesLive", "Different": "DiffersFromLive"}


@dataclass(frozen=True, slots=True)
class Entry:
    """One revision with its roles and how it relates to the live spec."""

    seen: Observed
    roles: tuple[str, ...]
    relation: str


@dataclass(frozen=True)
class HistoryReport:
    """The revisions of one service's runtime, newest first."""

    effective: EffectiveReport = field(repr=False)
    listing: Listing
    entries: tuple[Entry, ...]

    @property
    def observation(self) -> str:
        """Complete, Partial or Unavailable."""
        if self.listing.status == "Complete":
            return "Complete"
        is_partial = self.listing.pages > 0 or self.listing.status == "Truncated"
        return "Partial" if is_partial else "Unavailable"

    @property
    def completeness(self) -> str:
        """RetentionBounded (everything that OME keeps) or Incomplete."""
        return "RetentionBounded" if self.listing.status == "Complete" else "Incomplete"

    def issues(self) -> tuple[Issue, ...]:
        """The issues of the report as a whole; those of a revision stand with it."""
        found = self.effective.service_issues()
        if self.listing.status == "Unavailable":
            found.append(Issue("HistoryUnavailable"))
        if self.listing.status == "Truncated":
            found.append(Issue("HistoryTruncated"))
        return sorted_issues(found)

    def as_json(self) -> dict[str, Any]:
        """The RuntimeHistoryReport."""
        of = self.effective
        snapshot = of.snapshot
        listed = [
            revision_source(snapshot, each.seen.revision.name, each.seen.revision.uid)
            for each in self.entries
        ]
        extra = {"Truncated": {PARTIAL, TRUNCATED}, "Unavailable": {PARTIAL}}
        ref = of.resolved.ref
        content = {
            **({"runtime": reference(ref, snapshot.runtime_of(ref))} if ref else {}),
            "observation": self.observation,
            "completeness": self.completeness,
            "requestedPages": self.listing.asked,
            "observedPages": self.listing.pages,
            "revisions": [self._entry(each) for each in self.entries],
            "issues": [issue.as_json() for issue in self.issues()],
        }
        return envelope(
            "RuntimeHistoryReport",
            snapshot,
            of.service.ref,
            content,
            sources=[*of.sources(), *listed],
            warnings=of.warnings() | extra.get(self.listing.status, set()),
        )

    def _entry(self, entry: Entry) -> dict[str, Any]:
        seen = entry.seen
        snapshot = self.effective.snapshot
        data: dict[str, Any] = {
            "revision": revision_ref(snapshot, seen.revision.name, seen.revision)
        }
        if seen.source is not None:
            data["source"] = reference(seen.source)
        if seen.hash:
            data["hash"] = seen.hash
        return {
            **data,
            "roles": list(entry.roles),
            "consistency": seen.consistency,
            "relationToLive": entry.relation,
            "issues": seen.issues,
        }


def history(
    snapshot: Snapshot, service: InferenceService, evidence: Evidence = FROM_FILES
) -> HistoryReport:
    """The report on one service. Never raises for what users wrote."""
    of = effective(snapshot, service, evidence)
    name = of.resolved.name
    listing = evidence.listing("ControllerRevision")
    if not name:
        listing = Listing("Unavailable", 0, 0)
    named = {each.revision.name for each in of.revisions}
    stored = [each for each in snapshot.stored if each.name in named or each.runtime == name != ""]
    entries = [
        Entry(
            seen,
            tuple(_roles(of, seen, name)),
            _RELATIONS.get(found := relation(of.resolved.digest, seen.digest), found),
        )
        for seen in observe(stored, name, owners(service, of.resolved))
    ]
    return HistoryReport(of, listing, tuple(sorted(entries, key=_newest_first)))


def _roles(of: EffectiveReport, seen: Observed, runtime: str) -> Iterator[str]:
    name = seen.revision.name
    if name == of.active.revision and not of.active.reason:
        yield "Active"
    if name == of.pin.requested:
        yield "Requested"
    if name == of.pin.reported:
        yield "Reported"
    if seen.revision.runtime == runtime:
        yield "History"


def _newest_first(entry: Entry) -> tuple[float, str]:
    created = created_at(entry.seen.revision)
    return (float("inf") if created is None else -created.timestamp(), entry.seen.revision.name)
