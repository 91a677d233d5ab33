"""From merged settings and an edited runner to a pod spec: volumes, node selection, defaults.

Source: OME serving-runtimes document (v1.3); the defaults are those that OME's Deployments have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from ome.merging.container import DEFAULT_RUNNER_NAME
from ome.planning.accelerators import Accelerator
from ome.planning.context import ComponentRefused
from ome.planning.model import ModelMount

__all__ = ["select_nodes", "with_affinity", "with_defaults", "with_volumes"]

Json = Mapping[str, Any]

ENGINE_VERSION: Final = "runtime.ome.io/engine-version"
PROBE_PROFILE: Final = "runtime.ome.io/probe-profile"
_DEFAULT_GRACE: Final = 30
_DEFAULT_PORT: Final = 8080


def with_volumes(pod: Json, mounts: Iterable[ModelMount], component: str) -> dict[str, Any]:
    """Append the models' volumes. Raises ComponentRefused when a volume of that name exists."""
    volumes = list(pod.get("volumes") or ())
    taken = {volume.get("name") for volume in volumes}
    for mount in mounts:
        if mount.volume is None:
            continue
        if mount.volume["name"] in taken:
            name = mount.volume["name"]
            raise ComponentRefused.because(
                "VolumeNameTaken",
                f'volume "{name}" has the name of the model\'s own volume',
                path=f"{component} pod: volumes[{name}]",
                fix="rename the volume",
            )
        taken.add(mount.volume["name"])
        volumes.append(mount.volume)
    return {**pod, "volumes": volumes} if volumes else dict(pod)


def select_nodes(
    pod: Json,
    model: ModelMount | None,
    runtime: Mapping[str, str],
    accelerator: Accelerator | None,
    own: Iterable[Mapping[str, str]],
) -> dict[str, Any]:
    """The node selector: merged, then the model's label where absent, then the runtime's, the
    class's and last the service's own selectors."""
    selector = dict(pod.get("nodeSelector") or {})
    if model and model.node_label:
        selector.setdefault(model.node_label, "Ready")
    for layer in (runtime, accelerator.node_selector if accelerator else {}, *own):
        selector.update(layer)
    return {**pod, "nodeSelector": selector} if selector else dict(pod)


def with_affinity(
    pod: Json, accelerator: Accelerator | None, *, own_affinity: bool
) -> dict[str, Any]:
    """The class's node affinity, unless the service has an affinity or the pod a node affinity."""
    affinity = pod.get("affinity") or {}
    wanted = accelerator.node_affinity if accelerator else None
    if not wanted or own_affinity or affinity.get("nodeAffinity"):
        return dict(pod)
    return {**pod, "affinity": {**affinity, "nodeAffinity": wanted}}


def with_defaults(
    pod: Json, grace_seconds: int | None, *, probes_by_profile: bool
) -> dict[str, Any]:
    """Fill the pod and container fields that nobody set.

    The default readiness probe, a connection to the first port of `ome-container`, is left out when
    a probe profile will supply one.
    """
    grace = pod.get("terminationGracePeriodSeconds")
    if grace is None:
        grace = grace_seconds if grace_seconds is not None else _DEFAULT_GRACE
    return {
        "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        **{name: value for name, value in pod.items() if value is not None},
        "terminationGracePeriodSeconds": grace,
        "containers": [
            _container_defaults(container, probes_by_profile=probes_by_profile)
            for container in pod["containers"]
        ],
    }


def _container_defaults(container: Json, *, probes_by_profile: bool) -> dict[str, Any]:
    filled = {
        "imagePullPolicy": "IfNotPresent",
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        **container,
    }
    is_runner = container.get("name") == DEFAULT_RUNNER_NAME
    if is_runner and not container.get("readinessProbe") and not probes_by_profile:
        ports = container.get("ports") or ()
        filled["readinessProbe"] = {
            "tcpSocket": {"port": ports[0]["containerPort"] if ports else _DEFAULT_PORT},
            "timeoutSeconds": 1,
            "periodSeconds": 10,
            "successThreshold": 1,
            "failureThreshold": 3,
        }
    return filled
