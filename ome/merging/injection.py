"""Adding OME's own values to a container: environment, mounts, resources. Copies, never changes.

Source: OME serving-runtimes document (v1.3), "The engine, decoder and router"; accelerator-classes
document, "What a class changes".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ome.api.quantities import InvalidQuantity, parse_quantity

__all__ = [
    "count_accelerators",
    "has_env",
    "set_env",
    "with_env_if_absent",
    "with_extra_mounts",
    "with_resources",
]

Container = Mapping[str, Any]


def has_env(container: Container, name: str) -> bool:
    """Whether the container sets the variable, in whatever way."""
    return any(item.get("name") == name for item in container.get("env") or ())


def with_env_if_absent(container: Container, name: str, value: str) -> dict[str, Any]:
    """Append a variable unless the container sets it."""
    if has_env(container, name):
        return dict(container)
    return {**container, "env": [*(container.get("env") or ()), {"name": name, "value": value}]}


def set_env(container: Container, values: Mapping[str, str]) -> dict[str, Any]:
    """Set variables: in place where they stand (a `valueFrom` goes), else appended in name order."""
    env = []
    left = dict(values)
    for item in container.get("env") or ():
        name = item.get("name")
        if name not in values:
            env.append(item)
        elif name in left:
            env.append({"name": name, "value": left.pop(name)})
    env.extend({"name": name, "value": left[name]} for name in sorted(left))
    return {**container, "env": env}


def with_extra_mounts(container: Container, mounts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Append mounts whose path is still free: a mount that the user put there wins."""
    result = list(container.get("volumeMounts") or ())
    taken = {item.get("mountPath") for item in result}
    result.extend(mount for mount in mounts if mount["mountPath"] not in taken)
    return {**container, "volumeMounts": result} if result else dict(container)


def with_resources(container: Container, resources: Mapping[str, Any]) -> dict[str, Any]:
    """Set each resource as request and limit."""
    if not resources:
        return dict(container)
    old = container.get("resources") or {}
    return {
        **container,
        "resources": {
            **old,
            "requests": {**(old.get("requests") or {}), **resources},
            "limits": {**(old.get("limits") or {}), **resources},
        },
    }


def count_accelerators(container: Container, names: Sequence[str]) -> int:
    """Accelerators of a container: of the first name it has, its limit before its request.

    A quantity that can't be read counts as 0; the checks on the rendered pod report it.
    """
    resources = container.get("resources") or {}
    for name in names:
        for kind in ("limits", "requests"):
            amount = (resources.get(kind) or {}).get(name)
            if amount is not None:
                try:
                    return int(parse_quantity(amount))
                except InvalidQuantity:
                    return 0
    return 0
