"""The data that passes between the core and engine plugins. Plain and frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Any, Final

__all__ = [
    "CONTRACT",
    "Basis",
    "Container",
    "Detection",
    "EngineInfo",
    "Finding",
    "Geometry",
    "Parameter",
    "ParameterType",
    "PodView",
    "Preset",
    "Profile",
    "Severity",
]

# The version of the contract between the core and plugins. A plugin of another one isn't loaded.
CONTRACT: Final = 1


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """What a plugin says of itself: the engine's name, the contract it was written for and a line for
    people."""

    name: str
    contract: int
    summary: str


@dataclass(frozen=True, slots=True)
class Container:
    """What a plugin sees of a container: image, argv and the variables with a literal value.

    `version` is the engine's version by annotation, for images whose tag doesn't tell; "" without one.
    """

    image: str
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    version: str = ""

    @property
    def argv(self) -> tuple[str, ...]:
        """The command with its arguments."""
        return self.command + self.args


class Basis(IntEnum):
    """What an engine was recognised by; a stronger basis beats a weaker one."""

    IMAGE = 1
    COMMAND = 2


@dataclass(frozen=True, slots=True)
class Detection:
    """An engine recognised in a container.

    `version` is the engine's version as far as the image tells, else "". `opaque` says why the flags
    can't be read (a shell script, say), and is "" when they can.
    """

    basis: Basis
    version: str = ""
    opaque: str = ""


@dataclass(frozen=True, slots=True)
class Profile:
    """Named defaults that a pod can ask for by annotation: probes, or where metrics are served."""

    name: str
    probes: Mapping[str, Any] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


class ParameterType(StrEnum):
    """What a preset's parameter holds: one line of text, a whole number, a port number, or true or
    false."""

    STRING = "string"
    INTEGER = "integer"
    PORT = "port"
    BOOLEAN = "boolean"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A value that a runtime may give to a preset.

    `name` is words joined by dashes (`http-port`); the template sees it with underscores
    (`http_port`). `default` has the parameter's type.
    """

    name: str
    default: str | int
    description: str
    type: ParameterType = ParameterType.STRING


@dataclass(frozen=True, slots=True)
class Preset:
    """Values that fill what a runtime leaves unset.

    A runtime asks for it by its `name` in the annotation `ome.io/engine`. `template` is a Jinja2
    template that gives a part of a runtime's `spec` as YAML or JSON.
    """

    name: str
    template: str
    parameters: tuple[Parameter, ...] = ()
    summary: str = ""


class Severity(StrEnum):
    """How bad a finding is. A note is shown by `ome lint` alone, and never fails it."""

    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that the API accepts and that fails or hurts later.

    `path` is a field of the container (`readinessProbe.timeoutSeconds`), `reference` where it is
    documented or was reported.
    """

    code: str
    severity: Severity
    message: str
    path: str = ""
    fix: str = ""
    reference: str = ""


@dataclass(frozen=True, slots=True)
class PodView:
    """A rendered pod as a plugin sees it: JSON data that it must not change.

    `container` is the container that was recognised, `pod` the whole pod spec, `component` engine,
    decoder or router, `accelerators` the accelerators of the container, `service` the name of the
    InferenceService.
    """

    component: str
    container: Mapping[str, Any]
    pod: Mapping[str, Any]
    accelerators: int
    detection: Detection
    service: str = ""


@dataclass(frozen=True, slots=True)
class Geometry:
    """How a launch spreads a model over accelerators, as far as its command line tells.

    None is "can't be known". `shards` is how many accelerators share one copy of the weights,
    `attention_shards` how many share the attention heads, `pipeline` the stages that share the layers.
    `memory_fraction` is the part of an accelerator's memory that weights and KV cache may take together,
    0 to 1; `quantization` what the flags say of the weights, "" when the model's own files decide;
    `kv_bytes` the bytes of a number in the KV cache.
    """

    shards: int | None = None
    attention_shards: int | None = None
    pipeline: int | None = 1
    memory_fraction: float | None = None
    quantization: str | None = ""
    kv_bytes: float | None = 2
