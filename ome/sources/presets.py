"""Filling runtimes from the presets of the installed plugins.

A preset's template is rendered with the parameters that the runtime sets, read as YAML or JSON, checked
against the runtime's own schema and laid under the runtime's spec. Whatever goes wrong refuses the runtimes
that use the preset, and nothing else. Source: OME serving-runtimes document (v1.3), docs/presets.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ome.api import API_VERSION, ClusterServingRuntime, InvalidObject, Problem, parse
from ome.api.directives import has_directives
from ome.api.unknown import unknown_fields
from ome.engines.engines import Engines
from ome.engines.presets import OfferedPreset, parameter_value
from ome.engines.sandbox import TemplateFailed, TemplateRefuses, render
from ome.merging.schema import RUNTIME_SPEC
from ome.merging.strategic import merge_chain
from ome.snapshot import PARAMETER_PREFIX, PRESET_ANNOTATION, Filling, Runtime, unknown_preset
from ome.sources.documents import UnreadableInput, read_documents

__all__ = ["InstalledPresets"]

Json = Mapping[str, Any]
Values = tuple[tuple[str, str | int], ...]

# The message of a field that is missing, as `ome.api.parse` words it.
REQUIRED: Final = "required"
_PATH: Final = f"metadata.annotations[{PRESET_ANNOTATION}]"


@dataclass(frozen=True, slots=True)
class _Refused(Exception):
    """The runtime can't be filled, with the problem's code, message, path and fix."""

    code: str
    message: str
    path: str = _PATH
    fix: str = ""


class InstalledPresets:
    """Fills runtimes from the presets of engine plugins: what a snapshot takes as `presets`."""

    def __init__(self, engines: Engines) -> None:
        self._offered = engines.presets
        self._failed = [each.message for engine in engines for each in engine.problems]
        self._fragments: dict[tuple[str, Values], Json | _Refused] = {}

    def __call__(self, runtime: Runtime) -> Filling | None:
        """What its preset makes of a runtime; None when it names none."""
        name = runtime.annotations.get(PRESET_ANNOTATION)
        if not name:
            return None
        offered = self._offered.get(name)
        if offered is None:
            return unknown_preset(runtime, self._offered, "; ".join(self._failed))
        try:
            return self._fill(runtime, offered)
        except _Refused as refused:
            problem = Problem(refused.code, refused.message, runtime.ref, refused.path, refused.fix)
            return Filling(runtime, runtime, name, problem=problem)

    def complete(self, raw: dict[str, Any], faults: Iterable[Problem]) -> dict[str, Any]:
        """A runtime that lacks required fields with those that its preset gives it.

        In a cluster presets are applied before the API server's schema is, so that a runner needs no name
        where the preset names it. Takes the object, which isn't changed, and what its schema says of it.
        """
        try:
            fragment = self._fragment_for(_annotations_of(raw))
        except _Refused:
            fragment = None
        completed = raw
        for fault in faults if fragment else ():
            value: Any = {"spec": fragment}
            steps = fault.path.split(".")
            for step in steps:
                value = value.get(step) if isinstance(value, dict) else None
            if fault.message == REQUIRED and value is not None:
                completed = _with(completed, steps, {} if isinstance(value, dict) else value)
        return completed

    def _fragment_for(self, annotations: Mapping[str, str]) -> Json | None:
        """What the preset that is named gives; None when none is, or nobody supplies it."""
        offered = self._offered.get(annotations.get(PRESET_ANNOTATION, ""))
        if offered is None:
            return None
        if offered.fault:
            raise _failed(offered, offered.fault)
        values = _values(annotations, offered)
        key = (offered.preset.name, values)
        if key not in self._fragments:
            self._fragments[key] = _fragment(offered, values)
        fragment = self._fragments[key]
        if isinstance(fragment, _Refused):
            raise fragment
        return fragment

    def _fill(self, runtime: Runtime, offered: OfferedPreset) -> Filling:
        fragment = self._fragment_for(runtime.annotations)
        assert fragment is not None
        own = runtime.raw.get("spec") or {}
        try:
            filled = parse({**runtime.raw, "spec": merge_chain((fragment, own), RUNTIME_SPEC)})
        except InvalidObject as error:
            first = error.problems[0]
            raise _failed(offered, f"with the runtime's own spec, {_told(first)}") from None
        return Filling(filled, runtime, offered.preset.name, fragment)  # type: ignore[arg-type]


def _annotations_of(raw: Json) -> dict[str, str]:
    """The annotations of an object whose schema wasn't checked."""
    metadata = raw.get("metadata")
    found = metadata.get("annotations") if isinstance(metadata, dict) else None
    pairs = found.items() if isinstance(found, dict) else ()
    return {key: text for key, text in pairs if isinstance(text, str)}


def _with(holder: dict[str, Any], steps: Sequence[str], value: Any) -> dict[str, Any]:
    """A copy with a field set; what is on the way to it is there."""
    first, *rest = steps
    return {**holder, first: _with(holder[first], rest, value) if rest else value}


def _values(annotations: Mapping[str, str], offered: OfferedPreset) -> Values:
    """Every parameter with its value: the annotation's, or the default. Raises _Refused."""
    preset = offered.preset
    known = {parameter.name: parameter for parameter in preset.parameters}
    values = {name: parameter.default for name, parameter in known.items()}
    for annotation, text in sorted(annotations.items()):
        name = annotation.removeprefix(PARAMETER_PREFIX)
        if name == annotation or not text:
            continue
        path = f"metadata.annotations[{annotation}]"
        if name not in known:
            listed = ", ".join(sorted(known)) or "none"
            message = f'preset {preset.name} has no parameter "{name}" (known: {listed})'
            raise _Refused(
                "PresetParameterUnknown", message, path, "name one of these, or remove it"
            )
        try:
            values[name] = parameter_value(known[name], text)
        except ValueError as error:
            message = f"parameter {name} of preset {preset.name}: {error}"
            fix = f"remove it to get {_shown(known[name].default)}"
            raise _Refused("PresetParameterInvalid", message, path, fix) from None
    return tuple(sorted(values.items()))


def _shown(value: str | int) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _fragment(offered: OfferedPreset, values: Values) -> Json | _Refused:
    """The part of a runtime's spec that a preset gives, or why it gives none."""
    try:
        text = render(
            offered.preset.template, {name.replace("-", "_"): value for name, value in values}
        )
        documents = list(read_documents(text.encode(), "its text"))
    except TemplateRefuses as error:
        message = f"preset {offered.preset.name}: {error}"
        return _Refused("PresetParameterInvalid", message, fix="change the preset's parameters")
    except (TemplateFailed, UnreadableInput, UnicodeEncodeError) as error:
        return _failed(offered, str(error))
    if len(documents) != 1 or not isinstance(documents[0].value, dict):
        return _failed(offered, "it gives something that is no part of a runtime's spec")
    fragment: dict[str, Any] = documents[0].value
    raw = {
        "apiVersion": API_VERSION,
        "kind": ClusterServingRuntime.KIND,
        "metadata": {"name": "preset"},
        "spec": fragment,
    }
    try:
        faults = unknown_fields(parse(raw))
    except InvalidObject as error:
        faults = list(error.problems)
    if not faults and has_directives(fragment):
        return _failed(offered, "it holds directives, and has nothing below it to remove")
    return _failed(offered, _told(faults[0])) if faults else fragment


def _told(problem: Problem) -> str:
    return f"{problem.path}: {problem.message}"


def _failed(offered: OfferedPreset, why: str) -> _Refused:
    return _Refused(
        "PresetFailed",
        f"preset {offered.preset.name} of engine plugin {offered.plugin} failed: {why}",
        fix="mend the plugin, or write what the preset gives into the runtime and remove the annotation",
    )
