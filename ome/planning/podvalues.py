"""Values of a pod that Kubernetes takes only some of: enums, tolerations, host ports.

Source: the validation of Kubernetes' core API (`ValidatePodSpec`), for pods of a Deployment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ome.api import Problem

__all__ = ["check_host_ports", "check_pod_values", "check_probe_ports", "check_tolerations"]

Json = Mapping[str, Any]

_EFFECTS: Final = ("NoExecute", "NoSchedule", "PreferNoSchedule")
_POD_VALUES: Final[Mapping[str, Sequence[str]]] = {
    "restartPolicy": ("Always",),
    "dnsPolicy": ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"),
    "preemptionPolicy": ("Never", "PreemptLowerPriority"),
}
_CONTAINER_VALUES: Final[Mapping[str, Sequence[str]]] = {
    "imagePullPolicy": ("Always", "IfNotPresent", "Never"),
    "terminationMessagePolicy": ("FallbackToLogsOnError", "File"),
}
_SPREAD_VALUES: Final[Mapping[str, Sequence[str]]] = {
    "whenUnsatisfiable": ("DoNotSchedule", "ScheduleAnyway"),
}


def check_pod_values(pod: Json) -> Iterator[Problem]:
    """Fields with few values, of the pod, its containers and its spreading."""
    yield from _values(pod, "", _POD_VALUES)
    if pod.get("dnsPolicy") == "None" and not (pod.get("dnsConfig") or {}).get("nameservers"):
        text = "dnsPolicy None needs a name server"
        fix = "add dnsConfig.nameservers, or use another dnsPolicy"
        yield Problem("DnsConfigMissing", text, path="dnsConfig.nameservers", fix=fix)
    for part in ("containers", "initContainers"):
        for container in pod.get(part) or ():
            yield from _values(container, f"{part}[{container.get('name')}].", _CONTAINER_VALUES)
    for at, spread in enumerate(pod.get("topologySpreadConstraints") or ()):
        yield from _values(spread, f"topologySpreadConstraints[{at}].", _SPREAD_VALUES)
        skew = spread.get("maxSkew")
        if isinstance(skew, int) and skew < 1:
            path = f"topologySpreadConstraints[{at}].maxSkew"
            yield Problem("ValueInvalid", f"maxSkew is {skew}", path=path, fix="use 1 or more")


def _values(holder: Json, prefix: str, table: Mapping[str, Sequence[str]]) -> Iterator[Problem]:
    for field, allowed in table.items():
        value = holder.get(field)
        if value not in (None, "") and value not in allowed:
            text = f'{field} is "{value}", which Kubernetes doesn\'t take'
            fix = f"use {' or '.join(allowed)}"
            yield Problem("ValueInvalid", text, path=f"{prefix}{field}", fix=fix)


def check_tolerations(pod: Json) -> Iterator[Problem]:
    """Operators and effects of tolerations, and what goes with them."""
    for at, each in enumerate(pod.get("tolerations") or ()):
        path = f"tolerations[{at}]"
        yield from _values(each, f"{path}.", {"operator": ("Equal", "Exists"), "effect": _EFFECTS})
        operator = each.get("operator") or "Equal"
        if operator == "Exists" and each.get("value"):
            text = f'a toleration with operator Exists has no value, and this one has "{each["value"]}"'
            fix = "use operator Equal, or remove the value"
            yield Problem("TolerationInvalid", text, path=f"{path}.value", fix=fix)
        if not each.get("key") and operator != "Exists":
            text = "a toleration without a key tolerates everything, and needs operator Exists"
            yield Problem("TolerationInvalid", text, path=f"{path}.key", fix="set operator: Exists")
        if each.get("tolerationSeconds") is not None and each.get("effect") != "NoExecute":
            text = "tolerationSeconds goes with effect NoExecute alone"
            fix = "set effect: NoExecute, or remove it"
            yield Problem("TolerationInvalid", text, path=f"{path}.tolerationSeconds", fix=fix)


def check_host_ports(pod: Json) -> Iterator[Problem]:
    """With host networking, a host port is the container's."""
    if not pod.get("hostNetwork"):
        return
    for container in pod.get("containers") or ():
        for port in container.get("ports") or ():
            number, host = port.get("containerPort"), port.get("hostPort")
            if host not in (None, 0, number):
                text = f"with hostNetwork, port {number} can't have hostPort {host}"
                path = f"containers[{container.get('name')}].ports[{number}].hostPort"
                yield Problem(
                    "HostPortInvalid", text, path=path, fix=f"leave it out, or use {number}"
                )


def check_probe_ports(pod: Json) -> Iterator[Problem]:
    """A probe that asks over the network names a port."""
    for container in pod.get("containers") or ():
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            for handler in ("httpGet", "tcpSocket", "grpc"):
                asked = (container.get(probe) or {}).get(handler)
                if asked is not None and asked.get("port") in (None, ""):
                    path = f"containers[{container.get('name')}].{probe}.{handler}.port"
                    text = f"the {handler} of {probe} has no port"
                    yield Problem("ProbePortMissing", text, path=path, fix="set it")
