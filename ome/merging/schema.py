"""Which fields merge how, as data: the one table behind every merge.

Sources: OME runtime inheritance and serving-runtimes documents (v1.3); merge keys of the Kubernetes
PodSpec. A field that stands in no table merges by its JSON shape: objects field by field, lists and
scalars are replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

__all__ = [
    "COMPONENT",
    "CONTAINER",
    "OBJECT",
    "POD_FIELDS",
    "RUNTIME_SPEC",
    "Joined",
    "Keyed",
    "Node",
    "StringMap",
    "Struct",
    "Whole",
    "naming",
]


@dataclass(frozen=True, slots=True)
class Struct:
    """An object with fields of its own.

    `zero_is_unset` names those whose false or 0 says nothing. `edits` maps a field to the one that
    holds edits of it: setting the first drops the edits of lower layers.
    """

    fields: Mapping[str, Node] = field(default_factory=dict)
    zero_is_unset: frozenset[str] = frozenset()
    edits: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StringMap:
    """A free map: merged by key, and an empty string is a value like any other."""


@dataclass(frozen=True, slots=True)
class Keyed:
    """A list whose items are matched by the value of `key` and merged one by one.

    Where one list has several items of one key, `second` tells them apart too; its value defaults to
    `default`.
    """

    key: str
    item: Struct
    second: str = ""
    default: str = ""


@dataclass(frozen=True, slots=True)
class Whole:
    """A block that the overlay replaces as one."""


@dataclass(frozen=True, slots=True)
class Joined:
    """A list to which the overlay's items are added at the end."""


Node = Struct | StringMap | Keyed | Whole | Joined

OBJECT: Final = Struct()
_MAP: Final = StringMap()
_WHOLE: Final = Whole()
_READ_ONLY: Final = frozenset({"readOnly"})

_SOURCES_WITH_READ_ONLY: Final = (
    "awsElasticBlockStore azureDisk azureFile cephfs cinder csi fc flexVolume gcePersistentDisk "
    "glusterfs iscsi nfs persistentVolumeClaim portworxVolume quobyte rbd scaleIO storageos"
).split()

_VOLUME: Final = Struct({name: Struct({}, _READ_ONLY) for name in _SOURCES_WITH_READ_ONLY})

_CONTAINER_FIELDS: Final[dict[str, Node]] = {
    "env": Keyed("name", OBJECT),
    "ports": Keyed("containerPort", OBJECT, "protocol", "TCP"),
    "volumeMounts": Keyed("mountPath", Struct({}, _READ_ONLY)),
    "volumeDevices": Keyed("devicePath", OBJECT),
    "resources": Struct({"requests": _MAP, "limits": _MAP}),
    "argsPatch": Joined(),
}
CONTAINER: Final = Struct(
    _CONTAINER_FIELDS, frozenset({"stdin", "stdinOnce", "tty"}), {"args": "argsPatch"}
)

_POD_NODES: Final[dict[str, Node]] = {
    "volumes": Keyed("name", _VOLUME),
    "initContainers": Keyed("name", CONTAINER),
    "containers": Keyed("name", CONTAINER),
    "ephemeralContainers": Keyed("name", CONTAINER),
    "imagePullSecrets": Keyed("name", OBJECT),
    "schedulingGates": Keyed("name", OBJECT),
    "resourceClaims": Keyed("name", OBJECT),
    "hostAliases": Keyed("ip", OBJECT),
    "topologySpreadConstraints": Keyed("topologyKey", OBJECT, "whenUnsatisfiable"),
    "nodeSelector": _MAP,
    "overhead": _MAP,
}
_HOST_BOOLEANS: Final = frozenset({"hostNetwork", "hostPID", "hostIPC"})

# The fields of OME's copy of the PodSpec (api: PodSpec), at component level, in leader and in worker.
POD_FIELDS: Final = frozenset(
    "volumes initContainers containers ephemeralContainers restartPolicy "
    "terminationGracePeriodSeconds activeDeadlineSeconds dnsPolicy nodeSelector serviceAccountName "
    "serviceAccount automountServiceAccountToken nodeName hostNetwork hostPID hostIPC "
    "shareProcessNamespace securityContext imagePullSecrets hostname subdomain affinity schedulerName "
    "tolerations hostAliases priorityClassName priority dnsConfig readinessGates runtimeClassName "
    "enableServiceLinks preemptionPolicy overhead topologySpreadConstraints setHostnameAsFQDN os "
    "hostUsers schedulingGates resourceClaims".split()
)

_POD_WITH_RUNNER: Final = Struct({**_POD_NODES, "runner": CONTAINER}, _HOST_BOOLEANS)

COMPONENT: Final = Struct(
    {
        **_POD_NODES,
        "runner": CONTAINER,
        "leader": _POD_WITH_RUNNER,
        "worker": _POD_WITH_RUNNER,
        "labels": _MAP,
        "annotations": _MAP,
        "servicePortAppProtocols": _MAP,
        "config": _MAP,
        "autoscaler": _WHOLE,
    },
    _HOST_BOOLEANS | {"maxReplicas"},
)

RUNTIME_SPEC: Final = Struct(
    {
        "engineConfig": COMPONENT,
        "decoderConfig": COMPONENT,
        "routerConfig": COMPONENT,
        "nodeSelector": _MAP,
        "labels": _MAP,
        "annotations": _MAP,
        "containers": Keyed("name", CONTAINER),
        "volumes": Keyed("name", _VOLUME),
        "imagePullSecrets": Keyed("name", OBJECT),
        "scalingPolicy": _WHOLE,
    },
    _HOST_BOOLEANS,
)


def naming(old: list[Any], new: list[Any], node: Keyed) -> Callable[[Any], Any]:
    """What tells items apart: the key, and where one list repeats a key the second key as well."""
    key, second = node.key, node.second
    repeats = any(len({item[key] for item in side}) < len(side) for side in (old, new))
    if not second or not repeats:
        return lambda item: item[key]
    return lambda item: (item[key], item.get(second) or node.default)
