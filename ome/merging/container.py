"""Layering inside one component: runtime under service, pod fields under leader and worker, runner
against listed containers. Source: OME serving-runtimes and inference-services documents (v1.3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ome.merging.directives import Report
from ome.merging.schema import COMPONENT, CONTAINER, POD_FIELDS, Struct
from ome.merging.strategic import merge, merge_settled

__all__ = ["DEFAULT_RUNNER_NAME", "fold", "merge_component", "place_runner", "pod_fields_of"]

Component = Mapping[str, Any]

DEFAULT_RUNNER_NAME: Final = "ome-container"

# A runtime's accelerator override has no effect and its autoscaler is a layer of its own.
_NOT_FROM_RUNTIME: Final = ("acceleratorOverride",)


def merge_component(
    config: Component, overlay: Component, report: Report | None = None, *, patched: bool = True
) -> dict[str, Any]:
    """A component of the service over the runtime's config for it.

    Appends to `report` the directives that found nothing; not `patched` says that the overlay is
    known to hold none.
    """
    base = {name: value for name, value in config.items() if name not in _NOT_FROM_RUNTIME}
    if not patched:
        return merge_settled(base, overlay, COMPONENT)
    return merge(base, overlay, COMPONENT, report)


def pod_fields_of(component: Component) -> dict[str, Any]:
    """The pod-spec fields of a component (or of its leader or worker), without its runner."""
    return {name: component[name] for name in component if name in POD_FIELDS}


_POD_SCHEMA: Final = COMPONENT.fields["leader"]


def fold(component: Component, scheduler: str | None) -> dict[str, Any]:
    """Lay the component's pod fields under leader and worker, then fill `schedulerName`.

    A leader's or worker's own values win; directives were carried out before. `scheduler` is the
    runtime's top-level default: it fills every level that has none.
    """
    folded = dict(component)
    assert isinstance(_POD_SCHEMA, Struct)
    for part in ("leader", "worker"):
        if isinstance(own := component.get(part), dict):
            folded[part] = merge_settled(pod_fields_of(component), own, _POD_SCHEMA)
    if scheduler:
        if not folded.get("schedulerName"):
            folded["schedulerName"] = scheduler
        for part in ("leader", "worker"):
            if isinstance(folded.get(part), dict) and not folded[part].get("schedulerName"):
                folded[part] = {**folded[part], "schedulerName": scheduler}
    return folded


def place_runner(pod: Component, runner: Component) -> dict[str, Any]:
    """Put the runner among the pod's containers.

    A listed container of the runner's name is an overlay on the runner and keeps its place;
    otherwise the runner comes after the listed containers.
    """
    listed = list(pod.get("containers") or ())
    for at, container in enumerate(listed):
        if container.get("name") == runner["name"]:
            listed[at] = merge_settled(runner, container, CONTAINER)
            return {**pod, "containers": listed}
    return {**pod, "containers": [*listed, dict(runner)]}
