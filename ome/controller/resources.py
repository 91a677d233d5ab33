"""The API resources that the controller reads and writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from ome.api import API_VERSION, KINDS, ObjectRef

__all__ = ["BY_KIND", "OWNED", "Resource", "ref_of"]


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource of the API: its kind and where it is served.

    `crd` is the name of the CustomResourceDefinition that serves it, empty for what every cluster has.
    """

    kind: str
    api_version: str
    plural: str
    namespaced: bool = True
    crd: str = ""

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The path of an object, or of the list of all when `name` is empty."""
        root = "/apis/" if "/" in self.api_version else "/api/"
        parts = [root + self.api_version]
        if namespace and self.namespaced:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        parts += [part for part in (name, subresource) if part]
        return "/".join(parts)

    @property
    def full_name(self) -> str:
        """The resource as API errors name it, such as `deployments.apps`."""
        group = self.api_version.rpartition("/")[0]
        return f"{self.plural}.{group}" if group else self.plural


def _custom(kind: str, api_version: str, plural: str, namespaced: bool = True) -> Resource:
    return Resource(
        kind, api_version, plural, namespaced, f"{plural}.{api_version.partition('/')[0]}"
    )


_OME: Final = tuple(
    _custom(each.KIND, API_VERSION, each.PLURAL, each.NAMESPACED) for each in KINDS.values()
)
_RBAC: Final = "rbac.authorization.k8s.io/v1"

# What a service owns, in the order in which it is told about.
OWNED: Final = (
    Resource("Deployment", "apps/v1", "deployments"),
    Resource("Service", "v1", "services"),
    Resource("HorizontalPodAutoscaler", "autoscaling/v2", "horizontalpodautoscalers"),
    Resource("PodDisruptionBudget", "policy/v1", "poddisruptionbudgets"),
    Resource("ServiceAccount", "v1", "serviceaccounts"),
    Resource("Role", _RBAC, "roles"),
    Resource("RoleBinding", _RBAC, "rolebindings"),
    _custom("PodMonitor", "monitoring.coreos.com/v1", "podmonitors"),
    _custom("ScaledObject", "keda.sh/v1alpha1", "scaledobjects"),
)

BY_KIND: Final = {
    each.kind: each
    for each in (
        *_OME,
        *OWNED,
        Resource("ConfigMap", "v1", "configmaps"),
        Resource("ControllerRevision", "apps/v1", "controllerrevisions"),
        Resource(
            "CustomResourceDefinition",
            "apiextensions.k8s.io/v1",
            "customresourcedefinitions",
            namespaced=False,
        ),
        Resource("Event", "v1", "events"),
        Resource("Lease", "coordination.k8s.io/v1", "leases"),
        Resource("Node", "v1", "nodes", namespaced=False),
        Resource("Pod", "v1", "pods"),
    )
}


def ref_of(raw: dict[str, Any]) -> ObjectRef:
    """Which object a raw one is; the API server gave it, so it has a kind and a name."""
    metadata = raw["metadata"]
    return ObjectRef(raw["kind"], metadata.get("namespace") or "", metadata["name"])
