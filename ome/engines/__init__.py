"""The engine seam: what a plugin imports to take part. See docs/plugins.md."""

from ome.engines.hookspecs import hookimpl
from ome.engines.types import (
    CONTRACT,
    Basis,
    Container,
    Detection,
    EngineInfo,
    Finding,
    Geometry,
    Parameter,
    ParameterType,
    PodView,
    Preset,
    Profile,
    Severity,
)
from ome.merging.argv import Arity, Dialect, Group, parse

__all__ = [
    "CONTRACT",
    "Arity",
    "Basis",
    "Container",
    "Detection",
    "Dialect",
    "EngineInfo",
    "Finding",
    "Geometry",
    "Group",
    "Parameter",
    "ParameterType",
    "PodView",
    "Preset",
    "Profile",
    "Severity",
    "hookimpl",
    "parse",
]
