"""Carrying out the operations of `argsPatch`, once it is known how a container's engine reads flags.

They come before the accelerator class's edits and are gone afterwards: no pod has them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ome.api import ObjectRef, Problem
from ome.api.argspatch import ARGS_PATCH
from ome.api.parsing import suggestion
from ome.api.path import field_path
from ome.merging.argspatch import (
    apply_operation,
    flags_of,
    has_operators,
    pending,
    script_of,
    without_pending,
    words_of,
)
from ome.merging.argv import NULL_DIALECT, Dialect
from ome.planning.advice import view_of
from ome.planning.context import ComponentRefused, ServiceContext
from ome.planning.trace import Trace

__all__ = ["edit_arguments", "edit_containers"]

Json = Mapping[str, Any]

_LISTS: Final = ("initContainers", "containers", "ephemeralContainers")


def edit_arguments(
    context: ServiceContext,
    component: str,
    container: dict[str, Any],
    dialect: Dialect,
    trace: Trace | None,
    at: str,
) -> dict[str, Any]:
    """A container with its operations carried out, in the order of the layers, and dropped.

    `at` is where the trace has the container. An `unset` that finds nothing leaves a warning.
    """
    if ARGS_PATCH not in container:
        return container
    edited = without_pending(container)
    script = script_of(edited)
    if script is not None and has_operators(script[0]):
        ref, path = _origin(context, component, pending(container)[0])
        raise ComponentRefused.because(
            "ScriptNotEditable",
            f"argsPatch can't edit the script of {component} container {container.get('name')}: it is more "
            "than one plain command",
            path=f"{ref}: {field_path(path)}",
            fix="write the command and its flags as one list, or edit the script itself",
        )
    for operation in pending(container):
        known = flags_of(edited, dialect)
        edited, found = apply_operation(edited, operation, dialect)
        if found and trace is None:
            continue
        ref, path = _origin(context, component, operation)
        if trace is not None:
            _note(trace, context, ref, operation, edited, dialect, at)
        if not found:
            flag = str(operation["unset"])
            text = f"unset finds no {flag} on the command line of {component} container "
            text += f"{container.get('name')}"
            fix = suggestion(flag, known) or "remove it, or correct the flag"
            context.warnings.append(
                Problem("DirectiveUnmatched", text, ref, field_path((*path, "unset")), fix)
            )
    return edited


def edit_containers(
    context: ServiceContext,
    component: str,
    pod: dict[str, Any],
    serving: int,
    trace: Trace | None,
) -> dict[str, Any]:
    """A pod whose containers have their operations carried out: by the engine's dialect in the one
    that serves, by the documented one in the others."""
    for field in _waiting(pod):
        edited = []
        for place, item in enumerate(pod[field]):
            dialect = NULL_DIALECT
            if field == "containers" and place == serving and ARGS_PATCH in item:
                dialect = context.engines.recognise(view_of(item)).dialect
            at = f"{field}[{item.get('name')}]"
            edited.append(edit_arguments(context, component, item, dialect, trace, at))
        pod = {**pod, field: edited}
    return pod


def _waiting(pod: Json) -> list[str]:
    """The lists of containers in which one has operations."""
    found = []
    for field in _LISTS:
        for item in pod.get(field) or ():
            if ARGS_PATCH in item:
                found.append(field)
                break
    return found


def _note(
    trace: Trace,
    context: ServiceContext,
    ref: ObjectRef,
    operation: Json,
    edited: Json,
    dialect: Dialect,
    at: str,
) -> None:
    """What an operation changed is its layer's, and so is a flag that it set to what it was."""
    layer = context.service.KIND if ref == context.ref else str(ref)
    trace.changed(layer, edited, at)
    if wanted := operation.get("set"):
        for field, place in words_of(edited, str(wanted["name"]), dialect):
            trace.claimed(layer, f"{at}.{field}", place)


def _origin(
    context: ServiceContext, component: str, operation: Json
) -> tuple[ObjectRef, tuple[int | str, ...]]:
    """The layer that has an operation, and where. Merging shares parts, so it is the very object."""
    own = (context.ref, context.overlay(component), ("spec", component))
    layers = [
        (ref, spec.get(f"{component}Config"), ("spec", f"{component}Config"))
        for ref, spec in context.resolution.layers
    ]
    for ref, settings, path in (own, *layers):
        for found in _places(settings, operation, path):
            return ref, found
    return context.ref, own[2]


def _places(
    value: Any, operation: Json, path: tuple[int | str, ...]
) -> Iterator[tuple[int | str, ...]]:
    if value is operation:
        yield path
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _places(item, operation, (*path, name))
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from _places(item, operation, (*path, at))
