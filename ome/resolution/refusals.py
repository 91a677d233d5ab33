"""Why a service can't be resolved, as data: one constructor per documented refusal.

Messages are exact (OME documents v1.3: "Reference a runtime explicitly", "Runtime inheritance",
"Troubleshoot runtime selection"). `reason` is the reason of the condition or event that reports the
refusal; `denial` is what the admission webhook says where it words it differently.
"""

from __future__ import annotations

from dataclasses import dataclass

from ome.api import ObjectRef, Problem
from ome.resolution.inheritance import BrokenChain
from ome.resolution.pinning import Pin

__all__ = ["Refused"]


@dataclass(frozen=True, slots=True)
class Refused(Exception):
    """Resolution stops: nothing is rendered and what runs stays as it is. With `pin`, drift is why."""

    problem: Problem
    reason: str
    denial: str = ""
    pin: Pin | None = None

    def __str__(self) -> str:
        return self.problem.message


def runtime_not_found(service: ObjectRef, name: str, kind: str) -> Refused:
    """The named runtime exists in none of the scopes that its kind looks in."""
    if kind == "ServingRuntime":
        text = f"ServingRuntime {name} not found in namespace {service.namespace}"
    else:
        text = f"runtime {name} not found in namespace {service.namespace} or at cluster scope"
    problem = Problem("RuntimeNotFound", text, service, path="spec.runtime.name")
    return Refused(problem, "RuntimeNotFound")


def runtime_disabled(service: ObjectRef, runtime: ObjectRef, model: str | None) -> Refused:
    """The runtime's merged spec says `disabled: true`."""
    scope = "namespace-scoped" if runtime.namespace else "cluster-scoped"
    cause = f"{scope} runtime {runtime.name} is disabled"
    return invalid_runtime(service, runtime.name, model, cause, code="RuntimeDisabled")


def invalid_runtime(
    service: ObjectRef, runtime: str, model: str | None, cause: str, *, code: str
) -> Refused:
    """The runtime exists and can't serve; worded with the model when there is one."""
    if model is None:
        text = f"Runtime {runtime} failed validation: {cause}"
    else:
        text = f"Runtime {runtime} does not support model {model}: {cause}"
    denial = (
        cause if model is None else f"runtime {runtime} does not support model {model}: {cause}"
    )
    problem = Problem(code, text, service, path="spec.runtime.name")
    return Refused(problem, "RuntimeValidationError", denial)


def model_not_found(service: ObjectRef, name: str) -> Refused:
    """No model of the name, of either kind."""
    text = f"No BaseModel or ClusterBaseModel with the name: {name}"
    denial = (
        f'referenced model "{name}" not found in namespace "{service.namespace}": ensure a BaseModel '
        "exists in this namespace or a ClusterBaseModel exists cluster-wide with this name"
    )
    problem = Problem("ModelNotFound", text, service, path="spec.model.name")
    return Refused(problem, "ModelReconcileError", denial)


def model_disabled(service: ObjectRef, name: str) -> Refused:
    """The model says `disabled: true`."""
    text = f"specified base model {name} is disabled"
    problem = Problem("ModelDisabled", text, service, path="spec.model.name")
    return Refused(problem, "ModelReconcileError", f"model {name} is disabled")


def nothing_named(service: ObjectRef) -> Refused:
    """Neither a model nor a runtime."""
    text = "InferenceService must specify spec.runtime when spec.model is omitted"
    problem = Problem("ModelOrRuntimeRequired", text, service, path="spec")
    return Refused(
        problem, "RuntimeSelectionError", "at least one of spec.model or spec.runtime must be set"
    )


def selection_failed(service: ObjectRef, model: str, cause: str) -> Refused:
    """Automatic selection can't even begin: retried, and no condition says so."""
    text = f"Failed to find runtime for model {model}: {cause}"
    problem = Problem("ModelNotServable", text, service, path="spec.model.name")
    return Refused(problem, "RuntimeSelectionError", _no_supporting_runtime(model, cause))


def no_runtime_found(service: ObjectRef, model: str, message: str) -> Refused:
    """No runtime qualifies; the message lists what was looked at."""
    problem = Problem("NoRuntimeFound", message, service, path="spec.model.name")
    return Refused(problem, "RuntimeNotFound", _no_supporting_runtime(model, message))


def _no_supporting_runtime(model: str, cause: str) -> str:
    return (
        f"no supporting runtime found for model {model} and engine does not have complete runner "
        f"configuration: {cause}"
    )


def broken_chain(
    service: ObjectRef, runtime: str, model: str | None, broken: BrokenChain
) -> Refused:
    """The runtime's inheritance chain doesn't resolve."""
    if model is not None:
        return invalid_runtime(service, runtime, model, broken.message, code=broken.reason)
    problem = Problem(broken.reason, broken.message, service, path="spec.runtime.name")
    return Refused(problem, "RuntimeFetchError")


def unpinnable(service: ObjectRef, message: str) -> Refused:
    """A pinned service with neither a live runtime nor a revision: retried."""
    problem = Problem("RuntimeNotPinnable", message, service, path="spec.runtime")
    return Refused(problem, "RuntimePinError")


def drifted(service: ObjectRef, pin: Pin) -> Refused:
    """The pinned revision and the live runtime differ, or the revision is gone: a decision is due."""
    assert pin.drift is not None
    fix = ""
    if pin.drift.reason == "RevisionMismatch":
        fix = "the workload stays as it is until then"
    problem = Problem(pin.drift.reason, pin.drift.message, service, path="spec.runtime", fix=fix)
    return Refused(problem, "", pin=pin)
