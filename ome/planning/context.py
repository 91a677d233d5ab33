"""What one service's planning works with, and how a component is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from ome.api import API_VERSION, InferenceService, ObjectRef, Problem
from ome.engines.engines import Engines
from ome.merging.directives import settled
from ome.merging.placeholders import Context as Metadata
from ome.merging.schema import COMPONENT, RUNTIME_SPEC
from ome.merging.strategic import merge
from ome.resolution.resolve import Resolution
from ome.snapshot import Snapshot

__all__ = ["COMPONENTS", "ComponentRefused", "ServiceContext"]

Json = Mapping[str, Any]

# In the order they are handled.
COMPONENTS: Final = ("engine", "decoder", "router")


@dataclass(frozen=True, slots=True)
class ComponentRefused(Exception):
    """A component can't be rendered: it, what comes after it and the ingress step are held.

    `reason` is the reason of the event that reports it.
    """

    problems: tuple[Problem, ...]
    reason: str = "InternalError"

    @classmethod
    def because(
        cls, code: str, message: str, *, path: str = "", fix: str = "", reason: str = ""
    ) -> ComponentRefused:
        """A refusal with one problem; the planner adds the service and the component."""
        return cls((Problem(code, message, path=path, fix=fix),), reason or "InternalError")

    def __str__(self) -> str:
        return "; ".join(problem.message for problem in self.problems)


@dataclass(frozen=True)
class ServiceContext:
    """One service with what was resolved for it, and what planning leaves: warnings, by component how the
    model fits its accelerators, and by name the overlays: how they are mounted, or why they aren't."""

    snapshot: Snapshot
    engines: Engines
    service: InferenceService
    resolution: Resolution
    warnings: list[Problem] = field(default_factory=list)
    fits: dict[str, Json] = field(default_factory=dict)
    overlays: dict[str, Json | str] = field(default_factory=dict)

    @property
    def ref(self) -> ObjectRef:
        """The service."""
        return self.service.ref

    @cached_property
    def spec(self) -> Json:
        """The service's own spec."""
        return self.service.raw.get("spec") or {}

    @cached_property
    def runtime_spec(self) -> Json:
        """The effective spec of its runtime."""
        return self.resolution.spec

    @cached_property
    def model_spec(self) -> Json | None:
        """The spec of its model, if it has one."""
        model = self.resolution.model
        return None if model is None else model.raw.get("spec") or {}

    @cached_property
    def metadata(self) -> Metadata:
        """What placeholders can name."""
        service = self.service
        return Metadata(service.name, service.namespace, service.labels, service.annotations)

    @cached_property
    def owners(self) -> list[dict[str, Any]]:
        """The owner references of everything that the service owns.

        None when the service has no uid, as in a file that was never applied: the API server refuses
        a reference without one, and with a wrong one garbage collection would delete the object.
        """
        if not self.service.uid:
            return []
        reference = {
            "apiVersion": API_VERSION,
            "kind": self.service.KIND,
            "name": self.service.name,
            "uid": self.service.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
        return [reference]

    def overlay(self, component: str) -> Json | None:
        """What the service lays over the runtime's component, its directives included; None when it
        doesn't declare the component."""
        own = self.spec.get(component)
        return own if isinstance(own, dict) else None

    def declared(self, component: str) -> Json | None:
        """The service's own settings of a component, without directives; None when it doesn't declare
        the component."""
        return self._declared.get(component)

    @cached_property
    def _declared(self) -> dict[str, Json]:
        spec = self.spec
        own = {name: spec[name] for name in COMPONENTS if isinstance(spec.get(name), dict)}
        if self.service.has_directives:
            return {name: settled(each, COMPONENT) for name, each in own.items()}
        return own

    @cached_property
    def stages(self) -> list[tuple[ObjectRef, Json, Json]]:
        """The runtime's layers, weakest first: the object, its own spec, and the effective spec up to
        it. Only built when somebody asks where a value comes from."""
        found: list[tuple[ObjectRef, Json, Json]] = []
        so_far: Json = {}
        for ref, spec in self.resolution.layers:
            so_far = merge(so_far, spec, RUNTIME_SPEC)
            found.append((ref, spec, so_far))
        return found

    def config(self, component: str) -> Json:
        """The runtime's settings of a component."""
        return self.runtime_spec.get(f"{component}Config") or {}

    def warn(self, code: str, message: str, *, path: str = "", fix: str = "") -> None:
        """Leave an advisory about the service."""
        self.warnings.append(Problem(code, message, self.ref, path, fix))
