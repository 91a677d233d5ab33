"""The engines at hand: asks the one that owns a container, and isolates the ones that fail.

The core knows no engine by name. A container that no engine recognises gets the null engine: the
documented spellings of the parallelism flags by the documented grouping, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pluggy

from ome.api import Problem
from ome.engines import hookspecs
from ome.engines.types import (
    CONTRACT,
    Container,
    Detection,
    EngineInfo,
    Finding,
    PodView,
    Profile,
    Severity,
)
from ome.merging.argv import NULL_DIALECT, Dialect

__all__ = [
    "Engine",
    "Engines",
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
    """A loaded plugin."""

    info: EngineInfo
    distribution: str
    version: str
    manager: pluggy.PluginManager
    profiles: tuple[Profile, ...] = ()
    _dialects: dict[str, object] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        """The engine's name."""
        return self.info.name

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
    return Engine(info, distribution, version, manager, tuple(profiles))


def _asked(hook: Callable[[], Any], name: str) -> Any:
    try:
        return hook()
    except (
        Exception,
        SystemExit,
    ) as error:  # a plugin may raise anything; it must cost only itself
        raise PluginRefused(f"{name} failed: {type(error).__name__}: {error}") from error


@dataclass(frozen=True, slots=True)
class Recognised:
    """What a container was recognised as; `engine` is None for the null engine."""

    engine: Engine | None = None
    detection: Detection | None = None
    dialect: Dialect = NULL_DIALECT
    problems: tuple[Problem, ...] = ()


class Engines:
    """The loaded engines, and what kept others from loading."""

    def __init__(self, engines: Iterable[Engine] = (), errors: Iterable[LoadError] = ()) -> None:
        by_name: dict[str, Engine] = {}
        failed = list(errors)
        for engine in engines:
            if engine.name in by_name:
                other = by_name[engine.name].distribution
                text = f'the engine name "{engine.name}" is already taken by {other}'
                failed.append(LoadError(engine.name, engine.distribution, text))
            else:
                by_name[engine.name] = engine
        self._engines = dict(sorted(by_name.items()))
        self.errors = tuple(failed)

    def __iter__(self) -> Any:
        return iter(self._engines.values())

    @property
    def profiles(self) -> Mapping[str, Profile]:
        """Every profile by name."""
        return {profile.name: profile for engine in self for profile in engine.profiles}

    def recognise(self, container: Container) -> Recognised:
        """Which engine a container runs. A tie is nobody's: the null engine, and a problem."""
        found: list[tuple[Engine, Detection]] = []
        problems: list[Problem] = []
        for engine in self:
            answer = self._ask(engine, "ome_detect", problems, container=container)
            if answer is None:
                continue
            if isinstance(answer, Detection):
                found.append((engine, answer))
            else:
                problems.append(
                    _failure(engine, "ome_detect", "it gives something that is no Detection")
                )
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

    def _dialect(self, engine: Engine, version: str, problems: list[Problem]) -> Dialect:
        try:
            dialect = engine.dialect(version)
        except (
            Exception,
            SystemExit,
        ) as error:  # a plugin may raise anything; it must cost only itself
            problems.append(_failure(engine, "ome_dialect", _describe(error)))
            return NULL_DIALECT
        if not isinstance(dialect, Dialect):
            text = "it gives something that is no Dialect"
            problems.append(_failure(engine, "ome_dialect", text))
            return NULL_DIALECT
        return dialect

    def findings(self, engine: Engine, view: PodView) -> tuple[list[Finding], list[Problem]]:
        """What an engine finds in a rendered pod, and what went wrong asking it.

        The plugin gets a copy of the pod: what it changes there changes nothing that is rendered.
        """
        problems: list[Problem] = []
        pod = copy_json(view.pod)
        at = next(i for i, each in enumerate(view.pod["containers"]) if each is view.container)
        view = replace(view, pod=pod, container=pod["containers"][at])
        found = self._ask(engine, "ome_findings", problems, view=view) or []
        if not isinstance(found, list):
            found = [found]
        good = [finding for finding in found if _is_sound(finding)]
        if len(good) != len(found):
            text = "it gives something that is no Finding"
            problems.append(_failure(engine, "ome_findings", text))
        return good, problems

    @staticmethod
    def _ask(engine: Engine, hook: str, problems: list[Problem], **arguments: Any) -> Any:
        try:
            return getattr(engine.manager.hook, hook)(**arguments)
        except (Exception, SystemExit) as error:  # a plugin may raise anything
            problems.append(_failure(engine, hook, _describe(error)))
            return None


def copy_json(value: Any) -> Any:
    """A copy of JSON data, several times faster than a deep copy."""
    if isinstance(value, dict):
        return {key: copy_json(item) for key, item in value.items()}
    return [copy_json(item) for item in value] if isinstance(value, list) else value


def _is_sound(finding: object) -> bool:
    """Whether a finding is one in every field."""
    if not isinstance(finding, Finding) or not isinstance(finding.severity, Severity):
        return False
    texts = (finding.code, finding.message, finding.path, finding.fix, finding.reference)
    return all(isinstance(text, str) for text in texts)


def _describe(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _failure(engine: Engine, hook: str, what: str) -> Problem:
    return Problem(
        "EnginePluginFailed",
        f"engine plugin {engine.name} ({engine.distribution} {engine.version}): {hook} failed: {what}",
    )
