"""What hurts between objects: runtimes that only their names tell apart, classes that don't exist,
runtimes that no model can use."""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from ome.api import ApiObject
from ome.engines.types import Severity
from ome.lint.findings import LintFinding
from ome.scoring.entries import full_score
from ome.scoring.sizes import parse_size
from ome.scoring.verdict import ANY_SERVICE, judge

__all__ = ["overlaps", "unknown_classes", "unmatched"]

Json = Mapping[str, Any]
WARNING = Severity.WARNING


def _spec(item: ApiObject) -> Json:
    spec: Json = item.raw.get("spec") or {}
    return spec


def overlaps(runtimes: Sequence[ApiObject]) -> Iterator[LintFinding]:
    """Runtimes of one scope that the same model can get, where only the name decides which."""
    groups: dict[tuple[Any, ...], list[tuple[ApiObject, str]]] = defaultdict(list)
    for item in runtimes:
        spec = _spec(item)
        entries = spec.get("supportedModelFormats") or ()
        if spec.get("disabled") is True or not any(e.get("autoSelect") is True for e in entries):
            continue
        for at, entry in enumerate(entries):
            if entry.get("autoSelect") is not False:
                path = f"spec.supportedModelFormats[{at}]"
                groups[_signature(item, spec, entry)].append((item, path))
    for members in groups.values():
        distinct = {item.ref: (item, path) for item, path in members}
        ordered = sorted(distinct.values(), key=lambda m: (_bounds(m[0])[0], m[0].name))
        for (first, _), (second, path) in pairwise(ordered):
            if _bounds(second)[0] <= _bounds(first)[1]:
                winner = min(first.name, second.name)
                message = (
                    f"{first.name} and {second.name} fit the same models with the same score and size "
                    f"distance: only the name decides, for {winner}"
                )
                fix = "give one of them a higher priority, or separate their size ranges"
                yield LintFinding("RuntimesOverlap", WARNING, second.ref, path, message, fix)


def _signature(item: ApiObject, spec: Json, entry: Json) -> tuple[Any, ...]:
    """What two entries share when no model can tell their runtimes apart but by name."""
    least, most = _bounds(item)
    parts = []
    for name in ("modelFormat", "modelFramework"):
        part = entry.get(name) or {}
        parts += [part.get("name"), part.get("version"), part.get("operator") or "Equal"]
    sizes = spec.get("modelSizeRange") or {}
    shape = (
        most - least
        if sizes.get("min") and sizes.get("max")
        else (sizes.get("min"), sizes.get("max"))
    )
    return (
        item.namespace,
        *parts,
        entry.get("modelArchitecture"),
        entry.get("quantization"),
        repr(entry.get("diffusionPipeline")),
        full_score(entry),
        shape,
    )


def _bounds(item: ApiObject) -> tuple[float, float]:
    sizes = _spec(item).get("modelSizeRange") or {}
    least, most = sizes.get("min"), sizes.get("max")
    return (
        float("-inf") if least is None else float(parse_size(least)),
        float("inf") if most is None else float(parse_size(most)),
    )


def unknown_classes(
    runtimes: Sequence[ApiObject], classes: Sequence[ApiObject]
) -> Iterator[LintFinding]:
    """`acceleratorConfig` keys that name no class: OME ignores them without a word."""
    existing = [item.name for item in classes]
    for item in runtimes:
        spec = _spec(item)
        listed = (spec.get("acceleratorRequirements") or {}).get("acceleratorClasses") or []
        known = existing or listed
        for at, entry in enumerate(spec.get("supportedModelFormats") or ()):
            for key in entry.get("acceleratorConfig") or {}:
                if key in known:
                    continue
                path = f"spec.supportedModelFormats[{at}].acceleratorConfig[{key}]"
                near = difflib.get_close_matches(key.lower(), known, n=1)
                where = "in the input" if existing else "in acceleratorRequirements"
                message = f'no accelerator class is named "{key}" {where}: the settings are ignored'
                fix = f'did you mean "{near[0]}"?' if near else "create the class or remove the key"
                yield LintFinding(
                    "AcceleratorConfigUnknownClass", WARNING, item.ref, path, message, fix
                )


def unmatched(runtimes: Sequence[ApiObject], models: Sequence[ApiObject]) -> Iterator[LintFinding]:
    """Enabled runtimes with entries that support no model of the input, with the nearest miss."""
    described = [m for m in models if (_spec(m).get("modelFormat") or {}).get("name")]
    if not described:
        return
    by_names: dict[tuple[Any, ...], list[ApiObject]] = defaultdict(list)
    for item in described:
        by_names[_bucket(_spec(item))].append(item)
    for runtime in runtimes:
        spec = _spec(runtime)
        entries = spec.get("supportedModelFormats") or ()
        if spec.get("disabled") is True or not entries:
            continue
        visible = [
            model
            for bucket in dict.fromkeys(_bucket(entry) for entry in entries)
            for model in by_names.get(bucket, ())
            if not runtime.namespace or model.namespace in ("", runtime.namespace)
        ]
        why = _nearest_miss(runtime, spec, visible)
        if why:
            message = f"no model of the input can use the runtime: {why}"
            fix = "check the entry against the model that it is meant for"
            path = "spec.supportedModelFormats"
            yield LintFinding("RuntimeUnmatched", WARNING, runtime.ref, path, message, fix)


def _bucket(either: Json) -> tuple[Any, ...]:
    return (
        (either.get("modelFormat") or {}).get("name"),
        (either.get("modelFramework") or {}).get("name"),
        either.get("modelArchitecture"),
    )


def _nearest_miss(runtime: ApiObject, spec: Json, models: Sequence[ApiObject]) -> str:
    """Why the nearest model doesn't fit; "" when one does."""
    if not models:
        wanted = _bucket((spec.get("supportedModelFormats") or ({},))[0])
        shown = ", ".join(str(part) for part in wanted if part is not None)
        return f"none has {shown}"
    best = ""
    for model in models:
        reason = judge(runtime.ref, spec, _spec(model), ANY_SERVICE).reason
        if reason is None:
            return ""
        text = f"{model.name}: {reason.message}"
        if not best or len(text) < len(best):
            best = text
    return best
