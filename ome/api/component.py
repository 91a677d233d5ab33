"""The components of a service (engine, decoder, router) and their templates in a runtime.

Both sides share their fields. They differ in what the schema requires: an InferenceService may
leave out a runner's name and an autoscaler's class, a runtime may not (spec: api.md 1).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from ome.api.base import KEEPS_UNKNOWN, Defaulted, Model
from ome.api.pod import PodFields
from ome.api.scalars import (
    AtomicStrings,
    Int,
    Int32,
    Int64,
    IntOrString,
    JsonObject,
    NaturalInt32,
    Quantity,
    TextMap,
)
from ome.api.shapes import DeploymentStrategy, MetricSpec, NamedRunner, Runner, ScalingBehavior

__all__ = [
    "AcceleratorConstraints",
    "AcceleratorSelector",
    "AutoscalerPolicyRef",
    "ComponentAutoscaler",
    "ComponentExtension",
    "DecoderConfig",
    "DecoderSpec",
    "EngineConfig",
    "EngineSpec",
    "HPAAutoscaler",
    "KedaAutoscaler",
    "LeaderSpec",
    "LifecycleSpec",
    "ProportionalScaling",
    "RouterConfig",
    "RouterSpec",
    "RuntimeAutoscaler",
    "RuntimeAutoscalerPolicyRef",
    "ScalingPolicy",
    "WorkerSpec",
]


class AcceleratorConstraints(Model):
    """Filter for an accelerator policy (spec: api.md 4.4)."""

    min_memory: Int64 | None = None
    max_memory: Int64 | None = None
    min_compute_performance_tflops: Int64 | None = Field(
        default=None, alias="minComputePerformanceTFLOPS"
    )
    min_architecture_version: str | None = None
    required_features: AtomicStrings | None = None
    excluded_classes: AtomicStrings | None = None
    architecture_families: AtomicStrings | None = None
    preferred_precisions: AtomicStrings | None = None


class AcceleratorSelector(Model):
    """How an accelerator class is chosen; a named class beats the policy (spec: api.md 4.4)."""

    accelerator_class: str | None = None
    policy: Literal["BestFit", "Cheapest", "MostCapable", "FirstAvailable"] | None = None
    constraints: AcceleratorConstraints | None = None


class HPAAutoscaler(Model):
    """Settings of a HorizontalPodAutoscaler, passed through (spec: api.md 4.8)."""

    metrics: (
        Annotated[list[MetricSpec], Field(json_schema_extra={"x-kubernetes-list-type": "atomic"})]
        | None
    ) = None
    behavior: ScalingBehavior | None = None


class KedaAutoscaler(Model):
    """Settings of a KEDA ScaledObject, passed through (spec: api.md 4.8)."""

    triggers: Annotated[
        list[JsonObject],
        Field(min_length=1, json_schema_extra={"x-kubernetes-list-type": "atomic"}),
    ]
    advanced: JsonObject | None = None
    polling_interval: Int32 | None = None
    cooldown_period: Int32 | None = None
    idle_replica_count: Int32 | None = None
    fallback: JsonObject | None = None


class ComponentAutoscaler(Model):
    """Which scaler owns the replica count; in a service the class may be left out."""

    class_: Literal["HPA", "KEDA", "External", "None"] | None = Field(default=None, alias="class")
    hpa: HPAAutoscaler | None = None
    keda: KedaAutoscaler | None = None


class RuntimeAutoscaler(ComponentAutoscaler):
    """The autoscaler block of a runtime, where the class is required."""

    class_: Literal["HPA", "KEDA", "External", "None"] = Field(alias="class")


class AutoscalerPolicyRef(Defaulted):
    """Reference to a policy that renders the autoscaler (spec: api.md 4.8)."""

    name: Annotated[str, Field(min_length=1)] | None = None
    kind: Literal["AutoscalerPolicy", "ClusterAutoscalerPolicy"] = "AutoscalerPolicy"


class RuntimeAutoscalerPolicyRef(AutoscalerPolicyRef):
    """The policy reference of a runtime, where the name is required."""

    name: Annotated[str, Field(min_length=1)]


class ProportionalScaling(Defaulted):
    """Followers that scale with a leading component; admission refuses it as yet."""

    model_config = ConfigDict(json_schema_extra={"required": ["anchor"]})

    anchor: Literal["engine", "decoder", "router"] = "engine"
    ratios: dict[str, Quantity] | None = None


class ScalingPolicy(Defaulted):
    """How components scale together; admission takes only Independent (spec: api.md 4.8)."""

    model_config = ConfigDict(json_schema_extra={"required": ["mode"]})

    mode: Literal["Independent", "Proportional", "Pinned"] = "Independent"
    proportional: ProportionalScaling | None = None


class MigrationPolicy(Model):
    """Whether an OMENative Instance may migrate."""

    model_config = KEEPS_UNKNOWN

    mode: Literal["Auto", "Surge", "Never"] | None = None


class InPlaceUpdate(Model):
    """How an OMENative pod is drained for an update in place."""

    model_config = KEEPS_UNKNOWN

    grace_period_seconds: NaturalInt32 | None = None
    mark_not_ready_during_lifecycle: bool | None = None


class RollingUpdate(Model):
    """How many OMENative Instances change at a time."""

    model_config = KEEPS_UNKNOWN

    partition: NaturalInt32 | None = None
    max_unavailable: IntOrString | None = None
    max_surge: IntOrString | None = None


class UpdateStrategy(Model):
    """How OMENative pods are replaced."""

    model_config = KEEPS_UNKNOWN

    type: Literal["SurgeThenDrain", "RecreatePod", "InPlaceIfPossible", "InPlaceOnly"] | None = None
    rolling_update: RollingUpdate | None = None
    in_place_update_strategy: InPlaceUpdate | None = None


class LifecycleSpec(Model):
    """OMENative policies (spec: api.md 4.8); known, not acted on outside that mode."""

    model_config = KEEPS_UNKNOWN

    restart_policy: Literal["None", "RecreateInstanceOnPodRestart"] | None = None
    ready_policy: Literal["AllPodReady", "None"] | None = None
    instance_ready_timeout: str | None = None
    min_ready_seconds: NaturalInt32 | None = None
    migration_policy: MigrationPolicy | None = None
    update_strategy: UpdateStrategy | None = None


class ComponentExtension(Model):
    """Replicas, labels and scaling of a component (spec: api.md 4.7)."""

    min_replicas: Int | None = None
    max_replicas: Int | None = None
    labels: TextMap | None = None
    annotations: TextMap | None = None
    deployment_strategy: DeploymentStrategy | None = None
    autoscaler: ComponentAutoscaler | None = None
    autoscaler_policy_ref: AutoscalerPolicyRef | None = None
    timeout_seconds: Int64 | None = None
    service_port_app_protocols: TextMap | None = None
    min_available: IntOrString | None = None
    max_unavailable: IntOrString | None = None
    lifecycle: LifecycleSpec | None = None


class RuntimeExtension(ComponentExtension):
    """The same in a runtime, where autoscaler class and policy name are required."""

    autoscaler: RuntimeAutoscaler | None = None
    autoscaler_policy_ref: RuntimeAutoscalerPolicyRef | None = None


class LeaderSpec(PodFields):
    """Leader pod of a multi-node replica (spec: api.md 4.6)."""

    runner: NamedRunner | None = None


class WorkerSpec(PodFields):
    """Worker pods of a multi-node replica; `size` is the number per leader (spec: api.md 4.6)."""

    size: Int | None = None
    runner: NamedRunner | None = None


class _ModelServer(PodFields):
    """What an engine and a decoder have beside the pod and extension fields."""

    leader: LeaderSpec | None = None
    worker: WorkerSpec | None = None
    accelerator_override: AcceleratorSelector | None = None
    topology_key: str | None = None
    topology_spread: Literal["Preferred", "Required"] | None = None
    topology_spread_key: str | None = None


class EngineSpec(_ModelServer, ComponentExtension):
    """Engine of an InferenceService (spec: api.md 4.5)."""

    runner: Runner | None = None


class DecoderSpec(EngineSpec):
    """Decoder of an InferenceService: the engine's fields (spec: api.md 4.5)."""


class EngineConfig(_ModelServer, RuntimeExtension):
    """Engine template of a runtime (spec: api.md 4.5)."""

    runner: NamedRunner | None = None


class DecoderConfig(EngineConfig):
    """Decoder template of a runtime: the engine's fields (spec: api.md 4.5)."""


class RouterSpec(PodFields, ComponentExtension):
    """Router of an InferenceService (spec: api.md 4.6)."""

    runner: Runner | None = None
    config: TextMap | None = None


class RouterConfig(PodFields, RuntimeExtension):
    """Router template of a runtime (spec: api.md 4.6)."""

    runner: NamedRunner | None = None
    config: TextMap | None = None
