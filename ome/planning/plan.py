"""The plan: what should be, as data that serialises to JSON.

A refusal is never an empty plan: `Hold` leaves what runs alone, only `Remove` prunes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ome.api import ObjectRef, Problem

__all__ = ["Action", "Apply", "Event", "Hold", "Overlays", "Plan", "Provenance", "Remove"]

Json = dict[str, Any]
Provenance = Mapping[str, tuple[Any, str]]


@dataclass(frozen=True, slots=True)
class Apply:
    """These objects should exist, written in this order."""

    objects: tuple[Json, ...]

    def as_json(self) -> Json:
        """The action as JSON data."""
        return {"action": "Apply", "objects": list(self.objects)}


@dataclass(frozen=True, slots=True)
class Hold:
    """Leave what runs as it is; `problems` say why, the first one first, if anything is wrong at all."""

    problems: tuple[Problem, ...]

    def as_json(self) -> Json:
        """The action as JSON data."""
        return {"action": "Hold", "problems": [problem.as_json() for problem in self.problems]}


@dataclass(frozen=True, slots=True)
class Remove:
    """Nothing of this should exist: what the service owns of it is pruned."""

    def as_json(self) -> Json:
        """The action as JSON data."""
        return {"action": "Remove"}


Action = Apply | Hold | Remove


@dataclass(frozen=True, slots=True)
class Event:
    """A Kubernetes event; `digest` changes with its content, so that it is sent once per change."""

    type: str
    reason: str
    message: str

    @property
    def digest(self) -> str:
        """16 hex digits that identify the content."""
        text = "\0".join((self.type, self.reason, self.message))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def as_json(self) -> Json:
        """The event as JSON data."""
        return {
            "type": self.type,
            "reason": self.reason,
            "message": self.message,
            "digest": self.digest,
        }


@dataclass(frozen=True, slots=True)
class Overlays:
    """The overlays of a service's model: those that are mounted, as status lists them, and why the others
    aren't."""

    mounted: tuple[Json, ...] = ()
    skipped: tuple[str, ...] = ()

    def as_json(self) -> Json:
        """The overlays as JSON data."""
        return {"mounted": list(self.mounted), "skipped": list(self.skipped)}


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that one InferenceService asks for at one moment.

    `actions` holds engine, decoder, router and ingress, in the order they are carried out.
    `effects` are writes that come before everything else. `status` are fields of the service's status that
    the plan decides; those that it leaves out stay as they are. The condition `RuntimeDrifted` is removed
    where `conditions` lacks it. `denial` is what admission would refuse the service with. `provenance` is
    there only when asked for: by component, for every leaf of its pod and settings, the value and the layer
    that set it; `removals` are the layers of what directives and edits took away. `autoscalers` are, by
    component, the `class` of the autoscaler and its `specSource`; `overlays` is None where the service has
    none, or nothing came of them.
    """

    service: ObjectRef
    actions: Mapping[str, Action]
    effects: tuple[Json, ...] = ()
    conditions: tuple[Json, ...] = ()
    events: tuple[Event, ...] = ()
    warnings: tuple[Problem, ...] = ()
    decision: Json | None = None
    denial: str | None = None
    status: Mapping[str, Any] = field(default_factory=dict)
    provenance: Mapping[str, Provenance] = field(default_factory=dict)
    removals: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    autoscalers: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    overlays: Overlays | None = None

    @property
    def is_held(self) -> bool:
        """Whether something is held back."""
        return next(self.refusals(), None) is not None

    def held_back(self, problems: Mapping[str, Problem]) -> Plan:
        """The plan when these components couldn't be brought about after all: what was to be applied of
        them is held, and nothing is said of ingress that hasn't come true."""
        actions = {
            name: Hold((problems[name],))
            if name in problems and isinstance(action, Apply)
            else action
            for name, action in self.actions.items()
        }
        conditions = self.conditions
        if "ingress" in problems:
            conditions = tuple(each for each in conditions if each["type"] != "IngressReady")
        return replace(self, actions=actions, conditions=conditions)

    def objects(self) -> Iterator[Json]:
        """The objects to apply, in order."""
        for action in self.actions.values():
            if isinstance(action, Apply):
                yield from action.objects

    def refusals(self) -> Iterator[tuple[str, Problem]]:
        """Each problem that holds something back, with the component it holds; repeats left out."""
        seen = set()
        for component, action in self.actions.items():
            for problem in action.problems if isinstance(action, Hold) else ():
                if problem not in seen:
                    seen.add(problem)
                    yield component, problem

    def as_json(self) -> Json:
        """The plan as JSON data; what is empty is left out, except the actions."""
        data: Json = {
            "service": str(self.service),
            "actions": {name: action.as_json() for name, action in self.actions.items()},
        }
        optional: Json = {
            "effects": list(self.effects),
            "conditions": list(self.conditions),
            "events": [event.as_json() for event in self.events],
            "warnings": [warning.as_json() for warning in self.warnings],
            "decision": self.decision,
            "denial": self.denial,
            "status": dict(self.status),
            "provenance": provenance_json(self.provenance),
            "autoscalers": {name: dict(each) for name, each in self.autoscalers.items()},
            "overlays": self.overlays.as_json() if self.overlays else None,
        }
        return {**data, **{name: value for name, value in optional.items() if value}}


def provenance_json(provenance: Mapping[str, Provenance]) -> Json:
    """Provenance as JSON data: by component a list of `{path, value, layer}`."""
    return {
        component: [
            {"path": path, "value": value, "layer": layer}
            for path, (value, layer) in leaves.items()
        ]
        for component, leaves in provenance.items()
    }
