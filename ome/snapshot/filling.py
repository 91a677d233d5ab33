"""What a preset makes of a runtime that names one in `ome.io/engine`.

The preset stands under the runtime's own spec: it fills what the runtime leaves unset, before anything is
inherited. Where presets come from is not decided here. Source: OME serving-runtimes document (v1.3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ome.api import ClusterServingRuntime, ObjectRef, Problem, ServingRuntime

__all__ = [
    "PARAMETER_PREFIX",
    "PRESET_ANNOTATION",
    "Filling",
    "Presets",
    "Runtime",
    "no_presets",
    "unknown_preset",
]

Json = Mapping[str, Any]
Runtime = ServingRuntime | ClusterServingRuntime

PRESET_ANNOTATION: Final = "ome.io/engine"
# Annotations that set a preset's parameters begin with it: `engine.ome.io/http-port`.
PARAMETER_PREFIX: Final = "engine.ome.io/"


@dataclass(frozen=True, slots=True)
class Filling:
    """A runtime that names a preset.

    `runtime` is the filled runtime, `own` the runtime as it was, `preset` the preset's name and `fragment`
    what it gives. When `problem` says why the runtime can't be filled, `runtime` is as it was.
    """

    runtime: Runtime
    own: Runtime
    preset: str
    fragment: Json = field(default_factory=dict)
    problem: Problem | None = None

    @property
    def layers(self) -> tuple[tuple[ObjectRef, Json], ...]:
        """What the filled spec was merged from, weakest first."""
        preset = ObjectRef("preset", "", self.preset)
        return ((preset, self.fragment), (self.own.ref, self.own.raw.get("spec") or {}))


# What a preset makes of a runtime; None for one that names none. Same runtime, same answer.
Presets = Callable[[Runtime], Filling | None]


def unknown_preset(runtime: Runtime, known: Iterable[str], fix: str = "") -> Filling:
    """A runtime that names a preset which nobody supplies."""
    listed = ", ".join(sorted(known)) or "none installed"
    name = runtime.annotations[PRESET_ANNOTATION]
    problem = Problem(
        "UnknownPreset",
        f'unknown {PRESET_ANNOTATION} value "{name}" (known: {listed})',
        runtime.ref,
        f"metadata.annotations[{PRESET_ANNOTATION}]",
        fix or "name one of these, or install the plugin that supplies it",
    )
    return Filling(runtime, runtime, name, problem=problem)


def no_presets(runtime: Runtime) -> Filling | None:
    """Where no preset is installed, naming one is refused."""
    return unknown_preset(runtime, ()) if runtime.annotations.get(PRESET_ANNOTATION) else None
