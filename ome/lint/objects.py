"""What hurts in one runtime or model, whatever else there is.

Each rule is one function from an object to findings; `RUNTIME_RULES` and `MODEL_RULES` list them.
Oddities of the documented matching rules stay as they are: here is where they are said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from ome.api import ApiObject
from ome.engines.types import Severity
from ome.lint.findings import LintFinding
from ome.lint.spelling import suggest_size, suggest_version
from ome.scoring.sizes import is_readable, parse_size
from ome.scoring.versions import parse_version
from ome.snapshot import INHERIT_FROM, PARAMETER_PREFIX, PRESET_ANNOTATION

__all__ = ["MODEL_RULES", "RUNTIME_RULES"]

Json = Mapping[str, Any]
Rule = Callable[[ApiObject], Iterator[LintFinding]]

_OPERATORS: Final = ("Equal", "GreaterThan", "GreaterThanOrEqual")
_ZERO_COUNTS: Final = {"modelFormat": 10, "modelFramework": 5}
ERROR, WARNING = Severity.ERROR, Severity.WARNING


def _spec(item: ApiObject) -> Json:
    spec: Json = item.raw.get("spec") or {}
    return spec


def _entries(item: ApiObject) -> Iterator[tuple[str, Json]]:
    for at, entry in enumerate(_spec(item).get("supportedModelFormats") or ()):
        yield f"spec.supportedModelFormats[{at}]", entry


def _parts(item: ApiObject) -> Iterator[tuple[str, Json]]:
    """Every format and framework of a runtime's entries or of a model, with its path."""
    is_runtime = item.KIND.endswith("ServingRuntime")
    for path, holder in _entries(item) if is_runtime else [("spec", _spec(item))]:
        for name in _ZERO_COUNTS:
            if isinstance(part := holder.get(name), dict):
                yield f"{path}.{name}", part


def _change(text: str, proposal: str | None, otherwise: str) -> str:
    return f'write "{proposal}"' if proposal else otherwise


def versions(item: ApiObject) -> Iterator[LintFinding]:
    """A version that doesn't parse never matches, not even itself."""
    for path, part in _parts(item):
        text = part.get("version")
        if isinstance(text, str) and parse_version(text) is None:
            message = f'"{_short(text)}" is no version: it never matches, not even itself'
            fix = _change(
                text,
                suggest_version(text),
                "write up to three numbers without leading zeros, such as 4.45.0",
            )
            yield LintFinding("VersionUnreadable", ERROR, item.ref, f"{path}.version", message, fix)


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:39] + "…"


def operators(item: ApiObject) -> Iterator[LintFinding]:
    """Operators that are none, that a suffix defeats, or that read the other way round."""
    for path, part in _parts(item):
        operator, at = part.get("operator"), f"{path}.operator"
        if operator is None or not path.startswith("spec.supported"):
            continue
        if operator not in _OPERATORS:
            message = f'"{operator}" is no operator: it acts as a strict Equal'
            fix = f"use one of {', '.join(_OPERATORS)}"
            yield LintFinding("OperatorUnknown", WARNING, item.ref, at, message, fix)
        elif operator != "Equal":
            version = parse_version(part.get("version") or "")
            if version is not None and version.is_suffixed:
                text = part["version"]
                message = f"the suffix of {text} defeats {operator}: only the same version matches"
                fix = "leave the suffix out, or the operator"
                yield LintFinding("OperatorDefeated", WARNING, item.ref, at, message, fix)
            else:
                message = (
                    f"{operator} makes the version an upper limit for the model's, not a lower one"
                )
                fix = "leave the operator out to match one version"
                yield LintFinding("OperatorIsUpperLimit", WARNING, item.ref, at, message, fix)


def weights(item: ApiObject) -> Iterator[LintFinding]:
    """A weight of 0 counts as 10 (format) or 5 (framework)."""
    for path, part in _parts(item):
        if part.get("weight") == 0 and path.startswith("spec.supported"):
            counts = _ZERO_COUNTS[path.rpartition(".")[2]]
            message = f"weight 0 counts as {counts} in the score"
            fix = "leave it out for 1, or set the weight that you mean"
            yield LintFinding("WeightZero", WARNING, item.ref, f"{path}.weight", message, fix)


def range_sizes(item: ApiObject) -> Iterator[LintFinding]:
    """Sizes of a range that can't be read count as 0; a range with min above max takes no model."""
    sizes = _spec(item).get("modelSizeRange") or {}
    for name, effect in (
        ("min", "sets no lower limit"),
        ("max", "rejects every model with a size"),
    ):
        text = sizes.get(name)
        if isinstance(text, str) and not is_readable(text):
            severity = ERROR if name == "max" else WARNING
            message = f'"{_short(text)}" counts as 0: it {effect}'
            yield _size_finding(item, severity, f"spec.modelSizeRange.{name}", text, message)
    least, most = sizes.get("min"), sizes.get("max")
    readable = [text for text in (least, most) if text is not None and is_readable(text)]
    if len(readable) == 2 and parse_size(least) > parse_size(most):
        message = f"min {least} is above max {most}: every model with a size is rejected"
        path = "spec.modelSizeRange"
        yield LintFinding("RangeInverted", ERROR, item.ref, path, message, "swap them")


def model_size(item: ApiObject) -> Iterator[LintFinding]:
    """A model's size that can't be read counts as 0."""
    text = _spec(item).get("modelParameterSize")
    if isinstance(text, str) and text and not is_readable(text):
        message = f'"{_short(text)}" counts as 0: ranges with a min reject the model'
        yield _size_finding(item, ERROR, "spec.modelParameterSize", text, message)


def _size_finding(
    item: ApiObject, severity: Severity, path: str, text: str, message: str
) -> LintFinding:
    fix = _change(text, suggest_size(text), "write a number with M, B or T, such as 7B")
    return LintFinding("SizeUnreadable", severity, item.ref, path, message, fix)


def inheriting_auto_select(item: ApiObject) -> Iterator[LintFinding]:
    """A runtime that OME chooses is rendered without what it inherits."""
    parent = item.annotations.get(INHERIT_FROM)
    if not parent:
        return
    for path, entry in _entries(item):
        if entry.get("autoSelect") is True:
            message = f"OME would render the runtime without what it inherits from {parent}"
            fix = "name the runtime in services, and leave autoSelect out"
            yield LintFinding(
                "AutoSelectInherits", WARNING, item.ref, f"{path}.autoSelect", message, fix
            )


def priorities(item: ApiObject) -> Iterator[LintFinding]:
    """autoSelect entries of one name (or none) must not have different priorities."""
    seen: dict[str, int] = {}
    for path, entry in _entries(item):
        name, priority = entry.get("name") or "", entry.get("priority")
        if entry.get("autoSelect") is not True or priority is None:
            continue
        if seen.setdefault(name, priority) != priority:
            message = (
                f"different priorities assigned for the model format {name} under the "
                f"{item.KIND.lower()} {item.name}"
            )
            fix = "give entries of one name one priority, or different names"
            yield LintFinding(
                "DifferentPriorities", ERROR, item.ref, f"{path}.priority", message, fix
            )


def preset_on_child(item: ApiObject) -> Iterator[LintFinding]:
    """A preset fills the runtime's own spec, which beats everything that it inherits."""
    preset, parent = item.annotations.get(PRESET_ANNOTATION), item.annotations.get(INHERIT_FROM)
    if preset and parent:
        message = f"the values of preset {preset} beat those inherited from {parent}"
        path = f"metadata.annotations[{PRESET_ANNOTATION}]"
        fix = f"put the annotation on {parent}, or on the root of its chain"
        yield LintFinding("PresetBeatsParent", WARNING, item.ref, path, message, fix)


def idle_parameters(item: ApiObject) -> Iterator[LintFinding]:
    """Parameters of a preset on a runtime that names none."""
    if item.annotations.get(PRESET_ANNOTATION):
        return
    for name in sorted(item.annotations):
        if name.startswith(PARAMETER_PREFIX):
            path = f"metadata.annotations[{name}]"
            message = f"it sets a parameter, but the runtime has no {PRESET_ANNOTATION}: no effect"
            fix = f"name the preset in {PRESET_ANNOTATION}, or remove it"
            yield LintFinding("PresetParameterIdle", WARNING, item.ref, path, message, fix)


RUNTIME_RULES: Final[tuple[Rule, ...]] = (
    versions,
    operators,
    weights,
    range_sizes,
    inheriting_auto_select,
    priorities,
    preset_on_child,
    idle_parameters,
)
MODEL_RULES: Final[tuple[Rule, ...]] = (versions, model_size)
