"""The presets that plugins supply: which are usable, and what a parameter's text means."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from ome.engines.sandbox import MAX_TEMPLATE
from ome.engines.types import Parameter, ParameterType, Preset

__all__ = ["OfferedPreset", "check_preset", "offer", "parameter_value"]

Value = str | int

_NAME: Final = re.compile(r"[a-z0-9]([-.a-z0-9]{0,61}[a-z0-9])?")
_PARAMETER: Final = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_INTEGER: Final = re.compile(r"0|-?[1-9][0-9]{0,17}", re.ASCII)
_MAX_TEXT: Final = 1024


@dataclass(frozen=True, slots=True)
class OfferedPreset:
    """A preset with the plugins that supply it, and why it can't be used ("" when it can)."""

    preset: Preset
    plugin: str
    fault: str = ""


def offer(given: Iterable[tuple[Preset, str]]) -> dict[str, OfferedPreset]:
    """Presets with their plugins by name, sorted. One that is supplied twice is nobody's."""
    found: dict[str, OfferedPreset] = {}
    for preset, plugin in given:
        before = found.get(preset.name)
        if before is None:
            found[preset.name] = OfferedPreset(preset, plugin, check_preset(preset))
        else:
            text = f"{before.plugin} and {plugin} both supply it"
            found[preset.name] = OfferedPreset(preset, plugin, text)
    return dict(sorted(found.items()))


def check_preset(preset: Preset) -> str:
    """What keeps a preset from being used, whoever uses it; "" when nothing does."""
    parameters: Any = preset.parameters
    if not isinstance(preset.name, str) or not _NAME.fullmatch(preset.name):
        return f"its name {preset.name!r} must match {_NAME.pattern}"
    if not isinstance(preset.template, str) or not preset.template.strip():
        return "its template is no text"
    if len(preset.template) > MAX_TEMPLATE:
        return f"its template has more than {MAX_TEMPLATE:,} characters"
    if not isinstance(parameters, tuple):
        return "its parameters are no tuple"
    names: set[str] = set()
    for parameter in parameters:
        if fault := _parameter_fault(parameter, names):
            return fault
        names.add(parameter.name)
    return ""


def _parameter_fault(parameter: Any, before: set[str]) -> str:
    if not isinstance(parameter, Parameter):
        return "one of its parameters is no Parameter"
    name = parameter.name
    if not isinstance(name, str) or not _PARAMETER.fullmatch(name):
        return f"the name {name!r} of its parameter must match {_PARAMETER.pattern}"
    if name in before:
        return f"its parameter {name} stands twice"
    kind: Any = parameter.type
    if not isinstance(kind, ParameterType):
        return f"the type of its parameter {name} is no ParameterType"
    if not isinstance(parameter.description, str) or not parameter.description:
        return f"its parameter {name} has no description"
    default = parameter.default
    text = str(default).lower() if isinstance(default, bool) else str(default)
    try:
        same = parameter_value(parameter, text)
    except ValueError as error:
        return f"the default of its parameter {name}: {error}"
    return "" if type(same) is type(default) else f"the default of its parameter {name} is mistyped"


def parameter_value(parameter: Parameter, text: str) -> Value:
    """The value that a text stands for. Raises ValueError saying what it should be."""
    shown = f'"{text if len(text) <= 60 else text[:59] + "…"}"'
    if parameter.type is ParameterType.STRING:
        if len(text) > _MAX_TEXT or not text.isprintable():
            raise ValueError(f"{shown} isn't one line of at most {_MAX_TEXT} printable characters")
        return text
    if parameter.type is ParameterType.BOOLEAN:
        if text not in ("true", "false"):
            raise ValueError(f"{shown} is neither true nor false")
        return text == "true"
    number = int(text) if _INTEGER.fullmatch(text) else None
    if parameter.type is ParameterType.PORT:
        if number is None or not 1 <= number <= 65535:
            raise ValueError(f"{shown} is no port, a number from 1 to 65535")
        return number
    if number is None:
        raise ValueError(f"{shown} is no whole number")
    return number
