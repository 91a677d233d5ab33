"""The engines at hand: asks the one that owns a container, and isolates the ones that fail.

The core knows no engine by name. A container that no engine recognises gets the null engine: the
documented spellings of the parallelism flags by the documented grouping, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any, Final

import pluggy

from ome.api import Problem
from ome.engines import hookspecs
from ome.engines.guard import Clock, Guard, copy_json, failure, is_the_users
from ome.engines.presets import OfferedPreset, offer
from ome.engines.types import (
    CONTRACT,
    Basis,
    Container,
    Detection,
    EngineInfo,
    Finding,
    Geometry,
    PodView,
    Preset,
    Profile,
    Severity,
)
from ome.merging.argv import NULL_DIALECT, Arity, Dialect

__all__ = [
    "Engine",
    "Engines",
    "Inspection",
    "LoadError",
    "PluginRefused",
    "Recognised",
    "copy_json",
    "register",
]


class PluginRefused(Exception):
    """A plugin can't be used; the message says why and, where it can, which hook."""


@dataclass(frozen=True, slots=True)
class LoadError:
    """A plugin that isn't used: its entry point, its distribution and why."""

    name: str
    distribution: str
    message: str


@dataclass(frozen=True)
class Engine:
    """A loaded plugin; `problems` says what of it isn't used, though the rest is."""

    info: EngineInfo
    distribution: str
    version: str
    manager: pluggy.PluginManager
    profiles: tuple[Profile, ...] = ()
    presets: tuple[Preset, ...] = ()
    problems: tuple[Problem, ...] = ()
    _dialects: dict[str, object] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        """The engine's name."""
        return self.info.name

    @cached_property
    def label(self) -> str:
        """How problems name the plugin: engine, distribution and version."""
        return f"{self.name} ({self.distribution} {self.version})"

    def dialect(self, version: str) -> object:
        """What the plugin gives as its dialect for a version of the engine."""
        if version not in self._dialects:
            self._dialects[version] = self.manager.hook.ome_dialect(version=version) or NULL_DIALECT
        return self._dialects[version]


def register(plugin: object, *, distribution: str = "", version: str = "") -> Engine:
    """Check a plugin against the contract and take it in. Raises PluginRefused."""
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    try:
        manager.register(plugin)
        manager.check_pending()
    except pluggy.PluginValidationError as error:
        raise PluginRefused(" ".join(str(error).split())) from error
    info = _asked(manager.hook.ome_describe, "ome_describe")
    if not isinstance(info, EngineInfo):
        raise PluginRefused("ome_describe is missing or gives no EngineInfo")
    if info.contract != CONTRACT:
        text = f"it is written for contract {info.contract}, this OME has contract {CONTRACT}"
        raise PluginRefused(text)
    profiles = _asked(manager.hook.ome_profiles, "ome_profiles") or []
    if not all(isinstance(profile, Profile) for profile in profiles):
        raise PluginRefused("ome_profiles gives something that is no Profile")
    return _with_presets(Engine(info, distribution, version, manager, tuple(profiles)))


def _with_presets(engine: Engine) -> Engine:
    """The engine with its presets. A hook that fails costs the presets alone, and so does what is none."""
    problems: list[Problem] = []
    hook = engine.manager.hook.ome_presets
    given = Guard().ask(engine.label, "ome_presets", hook, problems, _is_list, "list of presets")
    good = tuple(each for each in given or () if _is_preset(each))
    if len(good) < len(given or ()):
        text = "it gives something that is no Preset"
        problems.append(failure(engine.label, "ome_presets", text))
    return replace(engine, presets=good, problems=tuple(problems))


def _is_list(answer: object) -> bool:
    return isinstance(answer, list | tuple)


def _is_preset(answer: object) -> bool:
    """Whether a preset is one that a runtime can name; what else is wrong with it is told by name."""
    return isinstance(answer, Preset) and isinstance(answer.name, str)


def _asked(hook: Callable[[], Any], name: str) -> Any:
    try:
        return hook()
    except BaseException as error:  # a plugin may raise anything; it must cost only itself
        if is_the_users(error):
            raise
        raise PluginRefused(f"{name} failed: {type(error).__name__}: {error}") from error


@dataclass(frozen=True, slots=True)
class Recognised:
    """What a container was recognised as; `engine` is None for the null engine."""

    engine: Engine | None = None
    detection: Detection | None = None
    dialect: Dialect = NULL_DIALECT
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Inspection:
    """What an engine says of a rendered pod, and what went wrong asking it."""

    findings: tuple[Finding, ...] = ()
    geometry: Geometry | None = None
    problems: tuple[Problem, ...] = ()


class Engines:
    """The loaded engines, and what kept others from loading.

    `clock` gives seconds: a hook that takes too long is reported, and not asked again. Answers about a
    container are kept: hooks are pure, and a fleet has few different containers.
    """

    def __init__(
        self,
        engines: Iterable[Engine] = (),
        errors: Iterable[LoadError] = (),
        *,
        clock: Clock | None = None,
    ) -> None:
        by_name: dict[str, Engine] = {}
        failed = list(errors)
        for engine in engines:
            clash = _clash(engine, by_name)
            if clash:
                failed.append(LoadError(engine.name, engine.distribution, clash))
            else:
                by_name[engine.name] = engine
        self._engines = dict(sorted(by_name.items()))
        self._guard = Guard(clock)
        self._recognised: dict[tuple[object, ...], Recognised] = {}
        self.errors = tuple(failed)

    def __iter__(self) -> Any:
        return iter(self._engines.values())

    @property
    def profiles(self) -> Mapping[str, Profile]:
        """Every profile by name. Engines may share one, so what they call alike is the same."""
        return {profile.name: profile for engine in self for profile in engine.profiles}

    @cached_property
    def presets(self) -> Mapping[str, OfferedPreset]:
        """Every preset by name, sorted; those that can't be used say why."""
        return offer((preset, engine.label) for engine in self for preset in engine.presets)

    @property
    def problems(self) -> list[Problem]:
        """What of the loaded plugins isn't used, and why."""
        found = [problem for engine in self for problem in engine.problems]
        for name, offered in self.presets.items():
            if offered.fault:
                text = (
                    f"preset {name} of engine plugin {offered.plugin} isn't used: {offered.fault}"
                )
                found.append(Problem("PresetFailed", text))
        return found

    def is_up(self, engine: Engine) -> bool:
        """Whether a plugin does its work: all of it is used, and no hook failed when it was last asked."""
        return not engine.problems and not self._guard.fails(engine.label)

    def recognise(self, container: Container) -> Recognised:
        """Which engine a container runs. A tie is nobody's: the null engine, and a problem."""
        key = _key(container)
        known = self._recognised.get(key)
        return known or self._keep(key, self._recognise(container))

    def recognise_edited(
        self, container: Container, before: Container | None, found: Recognised | None
    ) -> Recognised:
        """The same after a container's arguments were edited: only the engine that owned it is asked again.

        `found` is what it was recognised as `before`; with another image or command, or without it, all
        engines are asked.
        """
        if before is None or found is None:
            return self.recognise(container)
        if (container.image, container.command) != (before.image, before.command):
            return self.recognise(container)
        if found.engine is None:
            return found
        key = _key(container)
        known = self._recognised.get(key)
        if known is not None:
            return known
        problems = list(found.problems)
        detection = self._detect(found.engine, container, problems)
        if detection is None:
            return self.recognise(container)
        return self._keep(key, replace(found, detection=detection, problems=tuple(problems)))

    def _keep(self, key: tuple[object, ...], found: Recognised) -> Recognised:
        if len(self._recognised) >= _KEPT:
            self._recognised.clear()
        self._recognised[key] = found
        return found

    def _recognise(self, container: Container) -> Recognised:
        problems: list[Problem] = []
        found = [
            (engine, answer)
            for engine in self
            if (answer := self._detect(engine, container, problems)) is not None
        ]
        if not found:
            return Recognised(problems=tuple(problems))
        best = max(detection.basis for _, detection in found)
        strongest = [(engine, detection) for engine, detection in found if detection.basis is best]
        if len(strongest) > 1:
            names = ", ".join(engine.name for engine, _ in strongest)
            text = f"engines {names} all recognise the container {container.image}; none is used"
            return Recognised(problems=(*problems, Problem("EngineAmbiguous", text)))
        engine, detection = strongest[0]
        dialect = self._dialect(engine, detection.version, problems)
        return Recognised(engine, detection, dialect, tuple(problems))

    def _detect(
        self, engine: Engine, container: Container, problems: list[Problem]
    ) -> Detection | None:
        shown = replace(container, env=MappingProxyType(dict(container.env)))
        found: Detection | None = self._guard.ask(
            engine.label,
            "ome_detect",
            lambda: engine.manager.hook.ome_detect(container=shown),
            problems,
            _is_detection,
            "Detection",
        )
        return found

    def _dialect(self, engine: Engine, version: str, problems: list[Problem]) -> Dialect:
        found = self._guard.ask(
            engine.label,
            "ome_dialect",
            lambda: engine.dialect(version),
            problems,
            _is_dialect,
            "Dialect",
        )
        return found if isinstance(found, Dialect) else NULL_DIALECT

    def inspect(self, engine: Engine, view: PodView, *, measure: bool = False) -> Inspection:
        """What an engine says of a rendered pod of its own: findings and, with `measure`, geometry.

        The plugin gets a copy of the pod: what it changes there changes nothing that is rendered, and is
        reported.
        """
        problems: list[Problem] = []
        hooks = engine.manager.hook
        copied: PodView | None = None
        answers: dict[str, Any] = {}
        for name, accepts, wanted in _INSPECTING[: 2 if measure else 1]:
            hook = getattr(hooks, name)
            if not hook.get_hookimpls():
                continue
            shown = copied = copied or _copy(view)
            call = partial(hook, view=shown)
            answers[name] = self._guard.ask(engine.label, name, call, problems, accepts, wanted)
            if shown.pod != view.pod:
                text = "it changes the pod that it is shown; the change is dropped"
                self._guard.fail(engine.label, name, text, problems)
                copied = None
        found = answers.get("ome_findings")
        found = found if isinstance(found, list) else [] if found is None else [found]
        good = tuple(finding for finding in found if _is_sound(finding))
        if len(good) != len(found):
            text = "it gives something that is no Finding"
            self._guard.fail(engine.label, "ome_findings", text, problems)
        return Inspection(good, answers.get("ome_geometry"), tuple(problems))


def _copy(view: PodView) -> PodView:
    pod = copy_json(view.pod)
    at = next(i for i, each in enumerate(view.pod["containers"]) if each is view.container)
    return replace(view, pod=pod, container=pod["containers"][at])


def _key(container: Container) -> tuple[object, ...]:
    """What tells containers apart."""
    env = tuple(sorted(container.env.items()))
    return container.image, container.command, container.args, env, container.version


_KEPT: Final = 4_096
"""Containers whose answers are kept."""


def _is_detection(answer: object) -> bool:
    """Whether a detection is one in every field."""
    return (
        isinstance(answer, Detection)
        and isinstance(answer.basis, Basis)
        and isinstance(answer.version, str)
        and isinstance(answer.opaque, str)
    )


def _is_dialect(answer: object) -> bool:
    """Whether a dialect is one in what reading an argument list needs."""
    if not isinstance(answer, Dialect) or not isinstance(answer.arity, Mapping):
        return False
    spellings = (answer.tensor, answer.pipeline, tuple(answer.repeatable))
    return all(isinstance(arity, Arity) for arity in answer.arity.values()) and all(
        isinstance(each, str) for group in spellings for each in group
    )


def _is_geometry(answer: object) -> bool:
    """Whether a geometry is one in every field."""
    if not isinstance(answer, Geometry) or not isinstance(answer.quantization, str | None):
        return False
    counts = (answer.shards, answer.attention_shards, answer.pipeline)
    shares = (answer.memory_fraction, answer.kv_bytes)
    return all(each is None or (type(each) is int and each > 0) for each in counts) and all(
        each is None or (isinstance(each, int | float) and 0 < each < 64) for each in shares
    )


def _clash(engine: Engine, others: Mapping[str, Engine]) -> str:
    """What an engine calls like another and isn't the same: itself, or a profile; "" for nothing."""
    if engine.name in others:
        return f'the engine name "{engine.name}" is already taken by {others[engine.name].distribution}'
    for other in others.values():
        known = {profile.name: profile for profile in other.profiles}
        for profile in engine.profiles:
            if known.get(profile.name, profile) != profile:
                return f'its profile "{profile.name}" differs from that of {other.distribution}'
    return ""


def _is_sound(finding: object) -> bool:
    """Whether a finding is one in every field."""
    if not isinstance(finding, Finding) or not isinstance(finding.severity, Severity):
        return False
    texts = (finding.code, finding.message, finding.path, finding.fix, finding.reference)
    return all(isinstance(text, str) for text in texts)


_INSPECTING: Final[tuple[tuple[str, Callable[[Any], bool], str], ...]] = (
    ("ome_findings", lambda _: True, "Finding"),
    ("ome_geometry", _is_geometry, "Geometry"),
)
