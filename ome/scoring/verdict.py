"""What OME makes of one runtime for one model: the first failed check, or its score.

The checks stand in `CHECKS`, in the documented order; the first that fails is the runtime's reason.
Source: OME "Troubleshoot runtime selection" and "Runtime selection scoring" documents (v1.3).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from ome.api import ObjectRef, Problem
from ome.scoring.entries import entry_score
from ome.scoring.matching import entry_mismatches, model_label
from ome.scoring.sizes import range_distance, range_text, size_fits

__all__ = [
    "ANY_SERVICE",
    "CHECKS",
    "MODES",
    "MODE_ANNOTATION",
    "Request",
    "Verdict",
    "compatibility_error",
    "declared_mode",
    "judge",
]

Json = Mapping[str, Any]

MODES: Final = frozenset({"RawDeployment", "OMENative", "MultiNode", "VirtualDeployment"})
MODE_ANNOTATION: Final = "ome.io/deploymentMode"
_CLASS_ANNOTATION: Final = "ome.io/accelerator-class"


@dataclass(frozen=True, slots=True)
class Request:
    """What a service asks of any runtime: the accelerator classes that it names, pooled, and the
    deployment modes that its engine and decoder declare."""

    classes: frozenset[str] = frozenset()
    modes: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, service: Json) -> Request:
        """The request of an InferenceService, given as JSON data."""
        spec = service.get("spec") or {}
        annotations = (service.get("metadata") or {}).get("annotations") or {}
        named = [
            annotations.get(_CLASS_ANNOTATION),
            (spec.get("acceleratorSelector") or {}).get("acceleratorClass"),
        ]
        modes = {}
        for component in ("engine", "decoder"):
            own = spec.get(component)
            override = (own or {}).get("acceleratorOverride") or {}
            named.append(override.get("acceleratorClass"))
            declared = declared_mode((own or {}).get("annotations")) or spec.get("deploymentMode")
            if declared in MODES and (component == "engine" or isinstance(own, dict)):
                modes[component] = declared
        return cls(frozenset(name for name in named if name is not None), modes)


ANY_SERVICE: Final = Request()


def declared_mode(annotations: Json | None) -> str | None:
    """The deployment mode that annotations declare; a value that is no mode declares nothing."""
    value = (annotations or {}).get(MODE_ANNOTATION)
    return value if value in MODES else None


@dataclass(frozen=True, slots=True)
class Verdict:
    """One runtime's verdict.

    `reason` is the first failed check, None when the runtime supports the model. `entry` is the
    index of the first entry that matches. `score` and `distance` rank it; `eligible` says whether an
    entry lets OME choose the runtime at all.
    """

    runtime: ObjectRef
    reason: Problem | None
    entry: int | None = None
    score: int = 0
    distance: Decimal = Decimal(0)
    eligible: bool = False

    @property
    def selectable(self) -> bool:
        """Whether automatic selection can choose it."""
        return self.reason is None and self.eligible and self.score > 0


def _check_disabled(spec: Json, _: Json, __: Request) -> tuple[str, str] | None:
    if spec.get("disabled") is True:
        return "RuntimeDisabled", "runtime is disabled"
    return None


def _check_classes(spec: Json, _: Json, request: Request) -> tuple[str, str] | None:
    if not request.classes:
        return None
    listed = (spec.get("acceleratorRequirements") or {}).get("acceleratorClasses") or ()
    if request.classes.issubset(listed):
        return None
    return "AcceleratorClassMismatch", "runtime does not support the required accelerator class"


def _check_modes(spec: Json, _: Json, request: Request) -> tuple[str, str] | None:
    for component, wanted in request.modes.items():
        declared = declared_mode((spec.get(f"{component}Config") or {}).get("annotations"))
        if declared is not None and declared != wanted:
            text = (
                f"runtime {component} deployment mode {declared} does not match requested {component} "
                f"deployment mode {wanted}"
            )
            return "DeploymentModeMismatch", text
    return None


def _check_entries(spec: Json, model: Json, _: Request) -> tuple[str, str] | None:
    parts = []
    for entry in spec.get("supportedModelFormats") or ():
        reasons = entry_mismatches(entry, model)
        if not reasons:
            return None
        parts.append(", ".join(reasons))
    why = "; ".join(parts) or "no supported formats defined"
    return (
        "ModelFormatMismatch",
        f"model format '{model_label(model)}' not in supported formats: {why}",
    )


def _check_size(spec: Json, model: Json, _: Request) -> tuple[str, str] | None:
    sizes, size = spec.get("modelSizeRange"), model.get("modelParameterSize")
    if size_fits(size, sizes):
        return None
    text = f"model size {size} is outside supported range {range_text(sizes or {})}"
    return "ModelSizeOutOfRange", text


Check = Callable[[Json, Json, Request], tuple[str, str] | None]
CHECKS: Final[tuple[Check, ...]] = (
    _check_disabled,
    _check_classes,
    _check_modes,
    _check_entries,
    _check_size,
)
# Reasons that come before the model is looked at: messages name no model then.
_BEFORE_MODEL: Final = frozenset({"AcceleratorClassMismatch", "DeploymentModeMismatch"})


def judge(runtime: ObjectRef, spec: Json, model: Json, request: Request) -> Verdict:
    """The verdict on one runtime: its checks in order, then score and distance."""
    for check in CHECKS:
        failed = check(spec, model, request)
        if failed is not None:
            return Verdict(runtime, Problem(failed[0], failed[1], runtime))
    entries = spec.get("supportedModelFormats") or ()
    first = next(at for at, entry in enumerate(entries) if not entry_mismatches(entry, model))
    scores = [
        entry_score(entry, model) for entry in entries if entry.get("autoSelect") is not False
    ]
    distance = range_distance(model.get("modelParameterSize"), spec.get("modelSizeRange"))
    eligible = any(entry.get("autoSelect") is True for entry in entries)
    return Verdict(runtime, None, first, max([0, *scores]), distance, eligible)


def compatibility_error(runtime: str, model: Json, reason: Problem) -> str:
    """Why one runtime doesn't support a model, as the documents word it: the model is named by its
    format, or not at all for reasons that come before it is looked at."""
    named = "" if reason.code in _BEFORE_MODEL else (model.get("modelFormat") or {}).get("name", "")
    return f"runtime {runtime} does not support model {named}: {reason.message}"
