"""What Kubernetes would refuse in a rendered pod, found before anything is written.

Each check is one function from a pod spec to problems; the order of `CHECKS` is the order of the
messages. Paths are relative to the pod spec.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from ome.api import Problem
from ome.api.quantities import InvalidQuantity, parse_quantity
from ome.planning.metachecks import check_node_selector
from ome.planning.podvalues import (
    check_host_ports,
    check_pod_values,
    check_probe_ports,
    check_tolerations,
)

__all__ = ["CHECKS", "HANDLERS", "check_pod", "is_label"]

Json = Mapping[str, Any]

_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_PORT_NAME: Final = re.compile(
    r"(?=.{1,15}$)(?=.*[a-z])(?!.*--)[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII
)
HANDLERS: Final = ("exec", "grpc", "httpGet", "tcpSocket")
_PROBE_NUMBERS: Final = (
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
)
_PROBES: Final = ("startupProbe", "readinessProbe", "livenessProbe")


def check_pod(pod: Json) -> tuple[Problem, ...]:
    """Every problem of a pod spec."""
    return tuple(problem for check in CHECKS for problem in check(pod))


def _containers(pod: Json) -> Iterator[tuple[str, Json]]:
    for kind in ("initContainers", "containers"):
        for container in pod.get(kind) or ():
            yield f"{kind}[{container.get('name')}]", container


def _keys(value: Json, *but: str) -> list[str]:
    return [name for name in value if name not in but and value[name] is not None]


def is_label(name: str) -> bool:
    """Whether a name is a DNS label (RFC 1123), as those of containers and namespaces are."""
    return len(name) <= 63 and _LABEL.fullmatch(name) is not None


def _check_name(what: str, name: object, path: str, seen: set[Any]) -> Iterator[Problem]:
    """A name is a DNS label that nothing seen before has; adds it to what was seen."""
    if not isinstance(name, str) or not is_label(name):
        text = f'"{name or ""}" is no {what} name'
        fix = "use lower-case letters, digits and dashes, at most 63"
        yield Problem(f"{what.title()}NameInvalid", text, path=f"{path}.name", fix=fix)
    elif name in seen:
        text = f'two {what}s are named "{name}"'
        fix = "rename one of them"
        yield Problem(f"{what.title()}NameTaken", text, path=path, fix=fix)
    seen.add(name)


def check_names(pod: Json) -> Iterator[Problem]:
    """Containers have names, DNS labels, each once; ports have service names."""
    seen: set[Any] = set()
    for path, container in _containers(pod):
        yield from _check_name("container", container.get("name"), path, seen)
        for port in container.get("ports") or ():
            label = port.get("name")
            if label and not _PORT_NAME.fullmatch(label):
                text = f'"{label}" is no port name'
                fix = "use at most 15 lower-case letters, digits and single dashes, with a letter"
                at = f"{path}.ports[{port.get('containerPort')}].name"
                yield Problem("PortNameInvalid", text, path=at, fix=fix)


def check_images(pod: Json) -> Iterator[Problem]:
    """Every container needs an image."""
    for path, container in _containers(pod):
        if not container.get("image"):
            text = f'container "{container.get("name")}" has no image'
            fix = "set it in the runtime's or the service's runner"
            yield Problem("ImageMissing", text, path=f"{path}.image", fix=fix)


def check_volume_sources(pod: Json) -> Iterator[Problem]:
    """A volume has one source: a merge that isn't told to switch it leaves both."""
    for volume in pod.get("volumes") or ():
        sources = _keys(volume, "name")
        if len(sources) > 1:
            name = volume.get("name")
            text = f'volume "{name}" has {len(sources)} sources after the merge: {_and(sources)}'
            fix = "a layer that switches it lists in $retainKeys what stays"
            yield Problem("VolumeSourceConflict", text, path=f"volumes[{name}]", fix=fix)


def check_volume_names(pod: Json) -> Iterator[Problem]:
    """Volumes are DNS labels, each once."""
    seen: set[Any] = set()
    for volume in pod.get("volumes") or ():
        name = volume.get("name")
        yield from _check_name("volume", name, f"volumes[{name}]", seen)


def check_port_values(pod: Json) -> Iterator[Problem]:
    """Ports are numbers from 1 to 65535 of a protocol that Kubernetes has."""
    for path, container in _containers(pod):
        for port in container.get("ports") or ():
            number, protocol = port.get("containerPort"), port.get("protocol") or "TCP"
            at = f"{path}.ports[{number}]"
            if not isinstance(number, int) or not 0 < number < 65536:
                text = f"{number} is no port number"
                yield Problem("PortInvalid", text, path=at, fix="use 1 to 65535")
            if protocol not in ("TCP", "UDP", "SCTP"):
                text = f'"{protocol}" is no protocol of a port'
                yield Problem("ProtocolInvalid", text, path=at, fix="use TCP, UDP or SCTP")


def check_probe_numbers(pod: Json) -> Iterator[Problem]:
    """Probe numbers aren't negative; liveness and startup succeed at the first success."""
    for path, container in _containers(pod):
        for probe in _PROBES:
            value = container.get(probe) or {}
            for field in _PROBE_NUMBERS:
                number = value.get(field)
                if isinstance(number, int) and number < 0:
                    at = f"{path}.{probe}.{field}"
                    text = f"{field} {number} is negative"
                    yield Problem("ProbeNumberInvalid", text, path=at, fix="use 0 or more")
            if probe != "readinessProbe" and value.get("successThreshold") not in (None, 0, 1):
                at = f"{path}.{probe}.successThreshold"
                text = f"successThreshold of a {probe} must be 1"
                yield Problem("ProbeNumberInvalid", text, path=at, fix="set it to 1")


def check_mounts(pod: Json) -> Iterator[Problem]:
    """A mount needs its volume, and a path takes one mount."""
    volumes = {volume.get("name") for volume in pod.get("volumes") or ()}
    for path, container in _containers(pod):
        seen: dict[str, str] = {}
        for mount in container.get("volumeMounts") or ():
            name, where = mount.get("name"), mount.get("mountPath")
            at = f"{path}.volumeMounts[{where}]"
            if name not in volumes:
                text = f'mount {where} names volume "{name}", which the pod doesn\'t have'
                yield Problem("VolumeMissing", text, path=at, fix=f'add a volume "{name}"')
            if where in seen:
                text = f'volumes "{seen[where]}" and "{name}" are both mounted at {where}'
                yield Problem("MountPathTaken", text, path=at, fix="mount one of them elsewhere")
            seen.setdefault(where, name)


def check_ports(pod: Json) -> Iterator[Problem]:
    """Port names and numbers are unique in a container; with host networking, in the pod."""
    taken: dict[tuple[int, str], str] = {}
    for path, container in _containers(pod):
        names: dict[str, int] = {}
        if not pod.get("hostNetwork"):
            taken = {}
        for port in container.get("ports") or ():
            number, name = port.get("containerPort"), port.get("name")
            key = (number, port.get("protocol") or "TCP")
            if key in taken:
                text = f"port {number}/{key[1]} is declared twice ({taken[key]} and {name or 'unnamed'})"
                yield Problem("PortConflict", text, path=f"{path}.ports", fix="remove one of them")
            taken.setdefault(key, name or "unnamed")
            if name and name in names:
                text = f'ports {names[name]} and {number} are both named "{name}"'
                fix = "ports merge by containerPort: name the new port differently"
                yield Problem("PortNameTaken", text, path=f"{path}.ports[{number}].name", fix=fix)
            elif name:
                names[name] = number


def check_env_sources(pod: Json) -> Iterator[Problem]:
    """A variable has a value or one source: a merge that isn't told to switch leaves both."""
    for path, container in _containers(pod):
        for item in container.get("env") or ():
            name, source = item.get("name"), item.get("valueFrom")
            sources = _keys(source or {})
            if source is not None and len(sources) != 1:
                has = f"{len(sources)} sources: {_and(sources)}" if sources else "no source"
                text = f'valueFrom of variable "{name}" has {has}'
                fix = "set one of configMapKeyRef, secretKeyRef, fieldRef and resourceFieldRef"
                yield Problem("EnvSourceInvalid", text, path=f"{path}.env[{name}]", fix=fix)
            elif item.get("value") and source:
                text = f'variable "{name}" has both value and valueFrom after the merge'
                fix = "a layer that switches it lists in $retainKeys what stays"
                yield Problem("EnvSourceConflict", text, path=f"{path}.env[{name}]", fix=fix)


def check_probe_handlers(pod: Json) -> Iterator[Problem]:
    """A probe has one handler: a merge that isn't told to switch it leaves both."""
    for path, container in _containers(pod):
        for probe in _PROBES:
            value = container.get(probe)
            handlers = [name for name in HANDLERS if (value or {}).get(name) is not None]
            at = f"{path}.{probe}"
            if len(handlers) > 1:
                text = f"{probe} has {len(handlers)} handlers after the merge: {_and(handlers)}"
                fix = "a layer that switches it lists in $retainKeys what stays"
                yield Problem("ProbeHandlerConflict", text, path=at, fix=fix)
            elif value is not None and not handlers:
                text = f"{probe} has no handler"
                fix = "add httpGet, tcpSocket, grpc or exec"
                yield Problem("ProbeHandlerMissing", text, path=at, fix=fix)


def check_resources(pod: Json) -> Iterator[Problem]:
    """Quantities parse, and no request is above its limit (a merge can raise only one of them)."""
    for path, container in _containers(pod):
        resources = container.get("resources") or {}
        amounts: dict[str, dict[str, Any]] = {"requests": {}, "limits": {}}
        for kind, read in amounts.items():
            for name, value in (resources.get(kind) or {}).items():
                at = f"{path}.resources.{kind}[{name}]"
                try:
                    amount = parse_quantity(value)
                except InvalidQuantity as error:
                    fix = "write 2, 500m or 80Gi"
                    yield Problem("QuantityInvalid", str(error), path=at, fix=fix)
                    continue
                read[name] = amount
                if amount < 0:
                    text = f"{name} {value} is negative"
                    yield Problem("QuantityInvalid", text, path=at, fix="use 0 or more")
                elif "/" in name and amount % 1:
                    text = f"{name} {value} is no whole number"
                    fix = "extended resources are counted: use 1, 2, 4 or so"
                    yield Problem("QuantityInvalid", text, path=at, fix=fix)
        for name, amount in amounts["requests"].items():
            limit = amounts["limits"].get(name)
            if limit is not None and amount > limit:
                text = (
                    f"{name} requests {resources['requests'][name]}, "
                    f"above its limit {resources['limits'][name]}"
                )
                at = f"{path}.resources.requests[{name}]"
                yield Problem("RequestAboveLimit", text, path=at, fix="raise the limit as well")


def _and(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]])


CHECKS: Final[tuple[Callable[[Json], Iterator[Problem]], ...]] = (
    check_names,
    check_images,
    check_volume_names,
    check_volume_sources,
    check_mounts,
    check_port_values,
    check_ports,
    check_env_sources,
    check_probe_handlers,
    check_probe_numbers,
    check_resources,
    check_pod_values,
    check_tolerations,
    check_host_ports,
    check_probe_ports,
    check_node_selector,
)
