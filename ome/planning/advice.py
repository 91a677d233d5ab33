"""What engines and arithmetic say of a finished pod: warnings, which never hold a service back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ome.api import Problem
from ome.engines.engines import Inspection, Recognised
from ome.engines.types import Container, Geometry, PodView, Severity
from ome.merging.injection import count_accelerators
from ome.planning.accelerators import Accelerator
from ome.planning.context import ServiceContext
from ome.planning.fit import Fit, fit, uneven_heads

__all__ = ["advise", "view_of"]

Json = Mapping[str, Any]


def view_of(container: Json, version: str = "") -> Container:
    """What engine plugins see of a container; `version` is that of an annotation."""
    env = {
        item["name"]: item["value"]
        for item in container.get("env") or ()
        if isinstance(item.get("value"), str)
    }
    return Container(
        image=container.get("image") or "",
        command=tuple(container.get("command") or ()),
        args=tuple(container.get("args") or ()),
        env=env,
        version=version,
    )


def advise(
    context: ServiceContext,
    component: str,
    pod: Json,
    serving: int,
    accelerator: Accelerator | None,
    recognised: Recognised,
) -> None:
    """Leave what is found in a component's pod with the service: warnings, and how the model fits the
    accelerator class, where there is one and that can be known."""
    container = pod["containers"][serving]
    problems = list(recognised.problems)
    where = f"{component} container {container.get('name')}"
    if recognised.engine is not None and recognised.detection is not None:
        names = context.snapshot.config.accelerator_resources
        count = count_accelerators(container, names)
        name = context.service.name
        view = PodView(component, container, pod, count, recognised.detection, name)
        model = context.model_spec if component != "router" else None
        inspection = context.engines.inspect(recognised.engine, view, measure=model is not None)
        problems.extend(_problems(inspection, where))
        if model is not None and inspection.geometry is not None:
            problems.extend(_uneven(model, inspection.geometry, where))
            if accelerator is not None:
                found = fit(model, inspection.geometry, accelerator.memory)
                if found is not None:
                    context.fits[component] = found.as_json()
                    problems.extend(_too_big(found, accelerator, where))
    context.warnings.extend(replace(each, ref=context.ref) for each in problems)


def _problems(inspection: Inspection, where: str) -> Iterator[Problem]:
    yield from inspection.problems
    for finding in inspection.findings:
        yield Problem(
            finding.code,
            finding.message,
            path=f"{where}: {finding.path}" if finding.path else where,
            fix=finding.fix,
            reference=finding.reference,
            is_error=finding.severity is Severity.ERROR,
            is_note=finding.severity is Severity.NOTE,
        )


def _uneven(model: Json, geometry: Geometry, where: str) -> Iterator[Problem]:
    uneven = uneven_heads(model, geometry)
    if uneven is not None:
        heads, parts = uneven
        yield Problem(
            "AttentionHeadsNotDivisible",
            f"the model's {heads} attention heads can't be shared evenly by {parts} accelerators",
            path=where,
            fix=f"set the tensor parallelism to a divisor of {heads}",
            reference="vllm-project/vllm#2652",
            is_error=True,
        )


def _too_big(found: Fit, accelerator: Accelerator, where: str) -> Iterator[Problem]:
    if found.left <= 0:
        yield Problem(
            "ModelTooBig",
            f"the weights don't fit accelerators of class {accelerator.name}: {found.arithmetic}",
            path=where,
            fix="spread them over more accelerators, or choose a class with more memory",
        )
