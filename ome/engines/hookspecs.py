"""The hooks: the whole contract between the core and an engine plugin.

Hooks are pure functions on plain data: no clock, files, network or state. Each is asked of one
engine at a time; an implementation may take fewer arguments than the spec. What a hook raises is
caught, named with its plugin, and costs that engine's answer alone.
"""

from __future__ import annotations

import pluggy

from ome.engines.types import (
    Container,
    Detection,
    EngineInfo,
    Finding,
    Geometry,
    PodView,
    Preset,
    Profile,
)
from ome.merging.argv import Dialect

__all__ = ["PROJECT", "hookimpl", "hookspec"]

PROJECT = "ome"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec(firstresult=True)
def ome_describe() -> EngineInfo:
    """Who this engine is. Called once, at load; a plugin without it is refused."""
    raise NotImplementedError


@hookspec(firstresult=True)
def ome_detect(container: Container) -> Detection | None:
    """Whether a container runs this engine, and by what that shows; None if it doesn't.

    Called for the serving container of every engine, decoder and router that is rendered.
    """


@hookspec(firstresult=True)
def ome_dialect(version: str) -> Dialect | None:
    """How this engine's command line is read, for a version ("" when unknown). Data, cached."""


@hookspec(firstresult=True)
def ome_profiles() -> list[Profile] | None:
    """The probe and observability profiles that this engine supplies. Called once, at load."""


@hookspec(firstresult=True)
def ome_presets() -> list[Preset] | None:
    """The presets that runtimes can name in the annotation `ome.io/engine`. Called once, at load."""


@hookspec(firstresult=True)
def ome_findings(view: PodView) -> list[Finding] | None:
    """What is wrong, or will be, with a rendered pod of this engine."""


@hookspec(firstresult=True)
def ome_geometry(view: PodView) -> Geometry | None:
    """How a rendered pod of this engine spreads the model over accelerators; None if it can't be known.

    Called for engines and decoders with a model, after the pod is finished.
    """
