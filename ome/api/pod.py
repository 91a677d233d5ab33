"""The pod fields that every component carries at its own level.

OME keeps its own copy of the Kubernetes PodSpec in which `containers` is optional (spec: api.md
4.9); the fields are merged and passed through, so the model only has to know and check them.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Field

from ome.api import shapes
from ome.api.base import Model
from ome.api.scalars import Int32, Int64, ResourceQuantity, Schema, TextMap

__all__ = [
    "Affinity",
    "Containers",
    "ImagePullSecrets",
    "PodFields",
    "Tolerations",
    "Volumes",
]


def _pod_field(name: str) -> Schema:
    """The CRD schema of a field of the Kubernetes PodSpec."""
    return Schema({shapes.POD_PART: f"PodSpec.{name}"})


Affinity: TypeAlias = shapes.Affinity
Containers: TypeAlias = Annotated[list[shapes.Container], _pod_field("containers")]
ImagePullSecrets: TypeAlias = Annotated[
    list[shapes.ImagePullSecret], _pod_field("imagePullSecrets")
]
Tolerations: TypeAlias = Annotated[list[shapes.Toleration], _pod_field("tolerations")]
Volumes: TypeAlias = Annotated[list[shapes.Volume], _pod_field("volumes")]


class PodFields(Model):
    """The inline PodSpec of a component, a leader or a worker. Source: OME API reference v1.3."""

    volumes: Volumes | None = None
    init_containers: Annotated[list[shapes.Container], _pod_field("initContainers")] | None = None
    containers: Containers | None = None
    ephemeral_containers: (
        Annotated[list[shapes.EphemeralContainer], _pod_field("ephemeralContainers")] | None
    ) = None
    restart_policy: str | None = None
    termination_grace_period_seconds: Int64 | None = None
    active_deadline_seconds: Int64 | None = None
    dns_policy: str | None = None
    node_selector: Annotated[TextMap, _pod_field("nodeSelector")] | None = None
    service_account_name: str | None = None
    service_account: str | None = None
    automount_service_account_token: bool | None = None
    node_name: str | None = None
    host_network: bool | None = None
    host_pid: bool | None = Field(default=None, alias="hostPID")
    host_ipc: bool | None = Field(default=None, alias="hostIPC")
    share_process_namespace: bool | None = None
    security_context: shapes.PodSecurityContext | None = None
    image_pull_secrets: ImagePullSecrets | None = None
    hostname: str | None = None
    subdomain: str | None = None
    affinity: Affinity | None = None
    scheduler_name: str | None = None
    tolerations: Tolerations | None = None
    host_aliases: Annotated[list[shapes.HostAlias], _pod_field("hostAliases")] | None = None
    priority_class_name: str | None = None
    priority: Int32 | None = None
    dns_config: shapes.PodDNSConfig | None = None
    readiness_gates: (
        Annotated[list[shapes.PodReadinessGate], _pod_field("readinessGates")] | None
    ) = None
    runtime_class_name: str | None = None
    enable_service_links: bool | None = None
    preemption_policy: str | None = None
    overhead: Annotated[dict[str, ResourceQuantity], _pod_field("overhead")] | None = None
    topology_spread_constraints: (
        Annotated[list[shapes.TopologySpreadConstraint], _pod_field("topologySpreadConstraints")]
        | None
    ) = None
    set_hostname_as_fqdn: bool | None = Field(default=None, alias="setHostnameAsFQDN")
    os: shapes.PodOS | None = None
    host_users: bool | None = None
    scheduling_gates: (
        Annotated[list[shapes.PodSchedulingGate], _pod_field("schedulingGates")] | None
    ) = None
    resource_claims: (
        Annotated[list[shapes.PodResourceClaim], _pod_field("resourceClaims")] | None
    ) = None
