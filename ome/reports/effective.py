"""What a service is served from: the live runtime, the revision it is pinned to, and how the two relate.

Source: OME "kubectl ome runtime" reference (v1.3), "effective"; the tables of pin states and issues.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ome.api import InferenceService, ObjectRef, ServingRuntime
from ome.reports.evidence import (
    FROM_FILES,
    PARTIAL,
    STALE,
    UNAVAILABLE,
    Evidence,
    Issue,
    Source,
    envelope,
    reference,
    sorted_issues,
)
from ome.reports.live import ComponentMode, Live, component_modes, has_valid_kind, resolve_live
from ome.reports.pin import (
    PinReport,
    named_runtime,
    pin_mode,
    pin_report,
    pin_state,
    revision_names,
)
from ome.reports.revisions import Observed, observe, relation, revision_ref, revision_source
from ome.resolution.pinning import find_revision, runtime_kind
from ome.resolution.revisions import SHORT
from ome.snapshot import Snapshot

__all__ = ["EffectiveReport", "View", "effective", "owners"]

Json = Mapping[str, Any]

# Why the Active view can't be had, where the pin's state says it.
_PIN_REASONS: Final = {
    "RevisionMissing": "NotFound",
    "RevisionDisabled": "Disabled",
    "RevisionInvalid": "MalformedPayload",
    "InvalidIntent": "MalformedPayload",
}


@dataclass(frozen=True, slots=True)
class View:
    """One of the two specs: where it is from, its short hash, the components' modes; or the `reason` that
    there is none."""

    reason: str = ""
    origin: str = ""
    source: ObjectRef | None = None
    revision: str = ""
    hash: str = ""
    components: tuple[ComponentMode, ...] = ()

    @property
    def state(self) -> str:
        """Available or Unavailable."""
        return "Unavailable" if self.reason else "Available"


@dataclass(frozen=True)
class EffectiveReport:
    """Both views of one service with everything that was found on the way."""

    snapshot: Snapshot = field(repr=False)
    service: InferenceService
    resolved: Live
    pin: PinReport
    live: View
    active: View
    relation: str
    revisions: tuple[Observed, ...]
    missing: Mapping[str, str]

    def service_issues(self) -> list[Issue]:
        """The issues of the service itself, and revisions that aren't there."""
        pin, named = self.pin, named_runtime(self.service)
        configured = self.resolved.reason != "NotConfigured"
        codes = {
            "InvalidDeclaredKind": bool(named.get("name")) and not has_valid_kind(named),
            "DeclaredCompatibilityMismatch": self.resolved.is_incompatible,
            "InheritanceUnavailable": bool(self.resolved.chain_reason),
            "LiveRuntimeUnavailable": bool(self.resolved.reason) and configured,
            f"Status{pin.freshness}": pin.freshness != "Current",
            "ReportedDriftConflict": pin.drift[0] == "Malformed",
        }
        found = [Issue(code) for code, applies in codes.items() if applies]
        for name, reason in self.missing.items():
            code = "RevisionNotFound" if reason == "NotFound" else "RevisionUnavailable"
            found.append(Issue(code, name))
        return found

    def issues(self) -> tuple[Issue, ...]:
        """Every issue, by code and revision."""
        found = self.service_issues()
        if self.pin.state == "AwaitingPin":
            found.append(Issue("ActiveRevisionUnreported"))
        if self.pin.mode != "AutoSync" and self.active.reason:
            found.append(Issue("ActiveRevisionUnavailable"))
        for each in self.revisions:
            found.extend(Issue(code, each.revision.name) for code in each.issues)
        return sorted_issues(found)

    def sources(self) -> list[Source]:
        """The objects that the report is made from."""
        return [
            Source.of(self.service),
            *self.resolved.sources(),
            *(
                revision_source(self.snapshot, each.revision.name, each.revision.uid)
                for each in self.revisions
            ),
            *(
                revision_source(self.snapshot, name, reason=reason)
                for name, reason in self.missing.items()
            ),
        ]

    def warnings(self) -> set[str]:
        """What makes the report less than complete."""
        found = {PARTIAL} if self.pin.freshness != "Current" else set()
        if self.pin.freshness in ("Stale", "Invalid"):
            found.add(STALE)
        incomplete = self.missing or self.resolved.reason or self.resolved.chain_reason
        if incomplete and self.resolved.reason != "NotConfigured":
            found |= {PARTIAL, UNAVAILABLE}
        return found

    def as_json(self) -> dict[str, Any]:
        """The RuntimeEffectiveReport."""
        return envelope(
            "RuntimeEffectiveReport",
            self.snapshot,
            self.service.ref,
            self.content(),
            sources=self.sources(),
            warnings=self.warnings(),
        )

    def content(self) -> dict[str, Any]:
        """What the report says, without its envelope."""
        resolved, pin = self.resolved, self.pin
        state, cause = pin.drift
        return {
            "selection": {
                "source": resolved.selection,
                **({"runtime": self._runtime(resolved.ref)} if resolved.ref else {}),
            },
            "inheritance": {
                "state": "Unavailable" if resolved.chain_reason else "Observed",
                "sources": [reference(each.ref, each) for each in resolved.chain],
                **_if_set(unavailableReason=resolved.chain_reason),
            },
            "pin": {
                "mode": pin.mode,
                "state": pin.state,
                **_if_set(requestedRevision=pin.requested, reportedRevision=pin.reported),
                "status": {
                    "generation": pin.generation,
                    "observedGeneration": pin.observed_generation,
                    "freshness": pin.freshness,
                },
                "reportedDrift": {"state": state, **_if_set(cause=cause)},
                "syncState": pin.sync,
            },
            "live": self._view(self.live),
            "active": self._view(self.active),
            "liveToActive": self.relation,
            "issues": [issue.as_json() for issue in self.issues()],
        }

    def _runtime(self, ref: ObjectRef) -> dict[str, Any]:
        return reference(ref, self.snapshot.runtime_of(ref))

    def _view(self, view: View) -> dict[str, Any]:
        data: dict[str, Any] = {"state": view.state, **_if_set(origin=view.origin)}
        if view.source is not None:
            data["source"] = self._runtime(view.source)
        if view.revision:
            held = self.snapshot.revisions.get(view.revision)
            data["revision"] = revision_ref(self.snapshot, view.revision, held)
        data.update(_if_set(hash=view.hash))
        data["components"] = [each.as_json() for each in view.components]
        data.update(_if_set(unavailableReason=view.reason))
        return data


def _if_set(**values: str) -> dict[str, str]:
    return {name: value for name, value in values.items() if value}


def owners(service: InferenceService, live: Live) -> frozenset[tuple[str, str]]:
    """The kinds and namespaces that the labels of this runtime's revisions may have: where it is, and for
    one that was found beyond its declared kind, where the service says it is. Empty: unknown."""
    named = named_runtime(service)
    found = [] if live.ref is None else [(live.ref.kind, live.ref.namespace)]
    if named.get("name") and has_valid_kind(named):
        kind = runtime_kind(named)
        found.append((kind, service.namespace if kind == ServingRuntime.KIND else ""))
    return frozenset(found)


def effective(
    snapshot: Snapshot, service: InferenceService, evidence: Evidence = FROM_FILES
) -> EffectiveReport:
    """The report on one service. Never raises for what users wrote."""
    live = resolve_live(snapshot, service, evidence)
    requested, reported = revision_names(service)
    names = [name for name in (requested, reported) if name] if live.selection == "Explicit" else []
    stored = [each for each in snapshot.stored if each.name in names]
    seen = tuple(observe(stored, live.name, owners(service, live)))
    here = {each.revision.name for each in seen}
    missing = {
        name: evidence.failed.get(
            ObjectRef("ControllerRevision", snapshot.ome_namespace, name), "NotFound"
        )
        for name in names
        if name not in here
    }
    mode = pin_mode(service)
    wanted = {"ManagedPin": reported, "ExplicitPin": requested}.get(mode, "")
    # Of two of one name the later one counts, as everywhere.
    held = next((each for each in reversed(seen) if each.revision.name == wanted), None)
    state = pin_state(mode, live, wanted, held, missing)
    if state == "Resolved" and mode == "ExplicitPin" and reported not in ("", requested):
        state = "DesiredReportedMismatch"
    active, active_digest = _active(service, live, mode, state, wanted, held, missing)
    live_view = _live_view(snapshot, service, live, held)
    if active.origin == "LiveRuntime":
        active, active_digest = live_view, live.digest
    return EffectiveReport(
        snapshot=snapshot,
        service=service,
        resolved=live,
        pin=pin_report(service, mode, state),
        live=live_view,
        active=active,
        relation=relation(live.digest, active_digest),
        revisions=seen,
        missing=missing,
    )


def _active(
    service: InferenceService,
    live: Live,
    mode: str,
    state: str,
    wanted: str,
    held: Observed | None,
    missing: Mapping[str, str],
) -> tuple[View, str]:
    """The Active view with its full hash; one of the live runtime is left to the Live view."""
    if state in ("NotApplicable", "AwaitingPin"):
        return View(origin="LiveRuntime"), ""
    if state in ("Resolved", "DesiredReportedMismatch") and held is not None:
        view = View(
            "",
            "ControllerRevision",
            live.ref,
            wanted,
            _short(held),
            tuple(component_modes(service, held.revision.spec)),
        )
        return view, held.digest
    reason = missing.get(wanted) or _PIN_REASONS.get(state) or live.reason or "Unreadable"
    return View(reason, source=live.ref, revision=wanted), ""


def _live_view(
    snapshot: Snapshot, service: InferenceService, live: Live, held: Observed | None
) -> View:
    if live.spec is None or live.ref is None:
        return View(live.reason, source=live.ref)
    shown = _short(held) if held is not None and held.digest == live.digest else ""
    return View(
        "",
        "LiveRuntime",
        live.ref,
        hash=shown or _stored_hash(snapshot, live.ref, live.digest) or live.digest[:SHORT],
        components=tuple(component_modes(service, live.spec)),
    )


def _stored_hash(snapshot: Snapshot, runtime: ObjectRef, digest: str) -> str:
    """The hash by which live content is stored already: whoever wrote it, one content has one hash."""
    found = find_revision(snapshot, runtime, digest)
    if found is None:
        return ""
    (seen,) = observe([found], runtime.name, frozenset())
    return _short(seen)


def _short(seen: Observed) -> str:
    return seen.hash or seen.digest[:SHORT]
