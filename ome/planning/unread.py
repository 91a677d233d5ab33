"""Values of a service that name nothing. They are skipped, as documented; the user should know."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ome.api import ClusterServingRuntime, InferenceService, Problem, ServingRuntime
from ome.planning.context import COMPONENTS
from ome.scoring.verdict import MODE_ANNOTATION, MODES

__all__ = ["unread_values"]

_KINDS = (ClusterServingRuntime.KIND, ServingRuntime.KIND)


def unread_values(service: InferenceService) -> Iterator[Problem]:
    """A problem for each deployment mode in an annotation, and each kind of runtime, that isn't one."""
    spec = service.raw.get("spec") or {}
    annotated: list[tuple[str, Any]] = [("metadata", service.annotations)]
    for name in COMPONENTS:
        if isinstance(own := spec.get(name), dict):
            annotated.append((f"spec.{name}", own.get("annotations") or {}))
    for where, values in annotated:
        mode = values.get(MODE_ANNOTATION)
        if mode and mode not in MODES:
            yield Problem(
                "DeploymentModeUnknown",
                f'"{mode}" is no deployment mode and is skipped',
                service.ref,
                f"{where}.annotations[{MODE_ANNOTATION}]",
                f"use one of {', '.join(sorted(MODES))}",
            )
    kind = (spec.get("runtime") or {}).get("kind")
    if kind and kind not in _KINDS:
        yield Problem(
            "RuntimeKindUnknown",
            f'"{kind}" is no kind of runtime; the name is looked for in the namespace first',
            service.ref,
            "spec.runtime.kind",
            f"use {' or '.join(_KINDS)}",
        )
