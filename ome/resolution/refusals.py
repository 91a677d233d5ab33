"""Why a service can't be resolved, as data: one constructor per documented refusal.

Messages are exact (OME documents v1.3: "Reference a runtime explicitly", "Runtime inheritance",
"Troubleshoot runtime selection"). `reason` is the reason of the condition or event that reports the
refusal; `denial` is what the admission webhook says where it words it differently.
"""

from __future__ import annotations

from dataclasses import dataclass

from ome.api import ObjectRef, Problem
from ome.resolution.pinning import Pin
from ome.snapshot import BrokenChain

__all__ = ["Refused"]


@dataclass(frozen=True, slots=True)
class Refused(Exception):
    """Resolution stops: nothing is rendered and what runs stays as it is. With `pin`, drift is why.

    `denial` is what admission refuses the service with: "" for the problem's message, None when it lets
    the service pass.
    """

    problem: Problem
    reason: str
    denial: str | None = ""
    pin: Pin | None = None

    def __str__(self) -> str:
        return self.problem.message


_FIXES = {
    "RuntimeDisabled": "set disabled: false, or name another runtime",
    "ModelNotServable": "mend the model's spec",
    "ParentNotFound": "create the parent, or mend ome.io/inherit-from",
    "InheritanceCycle": "break the cycle of ome.io/inherit-from",
    "MaxDepthExceeded": "shorten the chain of ome.io/inherit-from",
}


def runtime_not_found(service: ObjectRef, name: str, kind: str, model: str | None) -> Refused:
    """The named runtime exists in none of the scopes that its kind looks in. Admission lets a service
    without a model pass: its runtime may follow."""
    if kind == "ServingRuntime":
        text = f"ServingRuntime {name} not found in namespace {service.namespace}"
    else:
        text = f"runtime {name} not found in namespace {service.namespace} or at cluster scope"
    problem = Problem(
        "RuntimeNotFound",
        text,
        service,
        path="spec.runtime.name",
        fix="create the runtime, or name one that exists",
    )
    return Refused(problem, "RuntimeNotFound", model and _unsupported(name, model, text))


def runtime_disabled(service: ObjectRef, runtime: ObjectRef, model: str | None) -> Refused:
    """The runtime's merged spec says `disabled: true`."""
    cause = disabled_text(runtime)
    return invalid_runtime(service, runtime.name, model, cause, code="RuntimeDisabled")


def disabled_text(runtime: ObjectRef) -> str:
    """How a disabled runtime is told."""
    scope = "namespace-scoped" if runtime.namespace else "cluster-scoped"
    return f"{scope} runtime {runtime.name} is disabled"


def pinned_denial(runtime: str, model: str | None, cause: str) -> str | None:
    """What admission says about a pinned service: only with a model is its live runtime looked at."""
    return _unsupported(runtime, model, cause) if model and cause else None


def _unsupported(runtime: str, model: str, cause: str) -> str:
    return f"runtime {runtime} does not support model {model}: {cause}"


def invalid_runtime(
    service: ObjectRef, runtime: str, model: str | None, cause: str, *, code: str
) -> Refused:
    """The runtime exists and can't serve; worded with the model when there is one."""
    if model is None:
        text = f"Runtime {runtime} failed validation: {cause}"
    else:
        text = f"Runtime {runtime} does not support model {model}: {cause}"
    denial = cause if model is None else _unsupported(runtime, model, cause)
    problem = Problem(code, text, service, path="spec.runtime.name", fix=_FIXES.get(code, ""))
    return Refused(problem, "RuntimeValidationError", denial)


def model_not_found(service: ObjectRef, name: str) -> Refused:
    """No model of the name, of either kind."""
    text = f"No BaseModel or ClusterBaseModel with the name: {name}"
    denial = (
        f'referenced model "{name}" not found in namespace "{service.namespace}": ensure a BaseModel '
        "exists in this namespace or a ClusterBaseModel exists cluster-wide with this name"
    )
    problem = Problem(
        "ModelNotFound",
        text,
        service,
        path="spec.model.name",
        fix="create the model, or name one that exists",
    )
    return Refused(problem, "ModelReconcileError", denial)


def model_disabled(service: ObjectRef, name: str) -> Refused:
    """The model says `disabled: true`."""
    text = f"specified base model {name} is disabled"
    problem = Problem(
        "ModelDisabled",
        text,
        service,
        path="spec.model.name",
        fix="set disabled: false, or name another model",
    )
    return Refused(problem, "ModelReconcileError", f"model {name} is disabled")


def nothing_named(service: ObjectRef) -> Refused:
    """Neither a model nor a runtime."""
    text = "InferenceService must specify spec.runtime when spec.model is omitted"
    problem = Problem(
        "ModelOrRuntimeRequired", text, service, path="spec", fix="name a model, a runtime or both"
    )
    return Refused(
        problem, "RuntimeSelectionError", "at least one of spec.model or spec.runtime must be set"
    )


def selection_failed(service: ObjectRef, model: str, cause: str) -> Refused:
    """Automatic selection can't even begin: retried, and no condition says so."""
    text = f"Failed to find runtime for model {model}: {cause}"
    problem = Problem(
        "ModelNotServable", text, service, path="spec.model.name", fix="set the model's modelFormat"
    )
    return Refused(problem, "RuntimeSelectionError", _no_supporting_runtime(model, cause))


def no_runtime_found(service: ObjectRef, model: str, message: str) -> Refused:
    """No runtime qualifies; the message lists what was looked at."""
    problem = Problem(
        "NoRuntimeFound",
        message,
        service,
        path="spec.model.name",
        fix="ome explain shows each check; or name a runtime",
    )
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
    if broken.preset is not None:
        return no_preset(service, broken.preset)
    if model is not None:
        return invalid_runtime(service, runtime, model, broken.message, code=broken.reason)
    problem = Problem(
        broken.reason,
        broken.message,
        service,
        path="spec.runtime.name",
        fix="mend the inheritance of the runtime",
    )
    return Refused(problem, "RuntimeFetchError")


def no_preset(service: ObjectRef, problem: Problem, path: str = "spec.runtime.name") -> Refused:
    """A runtime that the service uses can't have the preset that it names."""
    fix = f"mend {problem.path} of {problem.ref}"
    if problem.fix:
        fix = f"{fix}: {problem.fix}"
    told = Problem(problem.code, problem.message, service, path, fix)
    return Refused(told, "RuntimeValidationError")


def unpinnable(service: ObjectRef, message: str, denial: str | None) -> Refused:
    """A pinned service with neither a live runtime nor a revision: retried."""
    problem = Problem(
        "RuntimeNotPinnable",
        message,
        service,
        path="spec.runtime",
        fix="create or mend the runtime, or name another",
    )
    return Refused(problem, "RuntimePinError", denial)


def drifted(service: ObjectRef, pin: Pin, denial: str | None) -> Refused:
    """The pinned revision and the live runtime differ, or the revision is gone: a decision is due."""
    assert pin.drift is not None
    fix = ""
    if pin.drift.reason == "RevisionMismatch":
        fix = "the workload stays as it is until then"
    problem = Problem(pin.drift.reason, pin.drift.message, service, path="spec.runtime", fix=fix)
    return Refused(problem, "", denial, pin)


def fine_tuned_weights(service: ObjectRef, weights: list[str]) -> Refused:
    """Fine-tuned weights: several are never served together, and one isn't rendered yet."""
    text = "stacked fine-tuned serving is not supported yet"
    if len(weights) == 1:
        text = f"fine-tuned weights ({weights[0]}) aren't rendered by this version of OME"
    path = "spec.model.fineTunedWeights"
    fix = "remove them to serve the base model"
    return Refused(
        Problem("FineTunedWeightsUnsupported", text, service, path, fix), "InternalError"
    )


def revision_needs_auto_sync_false(service: ObjectRef) -> Refused:
    """A revision without `autoSync: false`."""
    text = (
        "spec.runtime.revision requires spec.runtime.autoSync=false; AutoSync=true would silently ignore "
        "the pin"
    )
    path = "spec.runtime.revision"
    problem = Problem("RevisionNeedsAutoSyncFalse", text, service, path, "set autoSync: false")
    return Refused(problem, "RuntimePinError", text)


def revision_name(
    service: ObjectRef, revision: str, runtime: str, kind: str, prefix: str
) -> Refused:
    """A revision's name of another form than this runtime's."""
    text = (
        f'spec.runtime.revision "{revision}" does not match the expected naming convention for runtime '
        f'"{runtime}" ({kind}); expected the form {prefix}<8 lowercase hex chars>'
    )
    fix = "name one of the runtime's revisions, or remove the field"
    problem = Problem("RevisionName", text, service, "spec.runtime.revision", fix)
    return Refused(problem, "RuntimePinError", text)
