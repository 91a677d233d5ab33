"""What a service asks for by its pin, what its status says of it, and what comes of the two.

Source: OME "kubectl ome runtime" reference (v1.3), the tables of PIN, SYNC, STATUS and DRIFT.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ome.api import InferenceService
from ome.reports.live import Live, has_valid_kind
from ome.reports.revisions import Observed
from ome.resolution.pinning import SYNC_ANNOTATION

__all__ = ["PinReport", "named_runtime", "pin_mode", "pin_report", "pin_state", "revision_names"]

Json = Mapping[str, Any]

_DRIFT_CAUSES: Final = frozenset(
    {"RevisionMismatch", "RevisionMissing", "SourceRuntimeMissing", "RuntimeMismatch"}
)
_DRIFT_STATES: Final = {
    "True": "ReportedTrue",
    "False": "ReportedFalse",
    "Unknown": "ReportedUnknown",
}


@dataclass(frozen=True, slots=True)
class PinReport:
    """What a service asks for, what its status says, and what comes of it."""

    mode: str
    state: str
    requested: str
    reported: str
    generation: int
    observed_generation: int
    drift: tuple[str, str]
    sync: str

    @property
    def freshness(self) -> str:
        """How `status.observedGeneration` compares with the generation."""
        seen = self.observed_generation
        if seen == 0:
            return "Unobserved"
        if seen == self.generation:
            return "Current"
        return "Stale" if seen < self.generation else "Invalid"


def named_runtime(service: InferenceService) -> Json:
    """The service's reference to a runtime; empty when it names none."""
    return (service.raw.get("spec") or {}).get("runtime") or {}


def _status(service: InferenceService) -> Json:
    return service.raw.get("status") or {}


def revision_names(service: InferenceService) -> tuple[str, str]:
    """The revision that the service asks for and the one that its status reports."""
    return (
        named_runtime(service).get("revision") or "",
        _status(service).get("pinnedRevisionName") or "",
    )


def pin_mode(service: InferenceService) -> str:
    """What the service's reference asks for."""
    named = named_runtime(service)
    if not named.get("name") or named.get("autoSync") is not False:
        return "AutoSync"
    if not has_valid_kind(named):
        return "InvalidPin"
    return "ExplicitPin" if named.get("revision") else "ManagedPin"


def pin_state(
    mode: str, live: Live, wanted: str, held: Observed | None, missing: Mapping[str, str]
) -> str:
    """The pin's state, before what the status reports is compared; the first that fits."""
    if live.reason and live.reason != "NotFound" and live.reason != "NotConfigured":
        return "Unavailable"
    if mode == "InvalidPin":
        return "InvalidIntent"
    if not wanted:
        if live.reason:
            return "Unavailable"
        return "NotApplicable" if mode == "AutoSync" else "AwaitingPin"
    if held is None:
        return "RevisionMissing" if missing[wanted] == "NotFound" else "Unavailable"
    foreign = mode == "ExplicitPin" and held.revision.runtime != live.name
    if not held.revision.is_usable or foreign:
        return "RevisionInvalid"
    return "RevisionDisabled" if held.is_disabled else "Resolved"


def pin_report(service: InferenceService, mode: str, state: str) -> PinReport:
    """Everything about the pin, with what the status says beside it."""
    status = _status(service)
    requested, reported = revision_names(service)
    return PinReport(
        mode=mode,
        state=state,
        requested=requested,
        reported=reported,
        generation=service.generation,
        observed_generation=status.get("observedGeneration") or 0,
        drift=_drift(status),
        sync=_sync(
            service.annotations.get(SYNC_ANNOTATION) or "", status.get("lastRuntimeSyncToken") or ""
        ),
    )


def _drift(status: Json) -> tuple[str, str]:
    """The `RuntimeDrifted` condition as state and cause."""
    found = [
        each for each in status.get("conditions") or () if each.get("type") == "RuntimeDrifted"
    ]
    if not found:
        return "NotReported", ""
    if len(found) > 1:
        return "Malformed", ""
    reason = found[0].get("reason")
    cause = reason if reason in _DRIFT_CAUSES else "Other"
    return _DRIFT_STATES.get(found[0].get("status"), "Malformed"), cause


def _sync(asked: str, used: str) -> str:
    if not asked:
        return "StatusOnly" if used else "Absent"
    return "Acknowledged" if asked == used else "Pending"
