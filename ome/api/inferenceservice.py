"""InferenceService: what a user asks to be served, and how it went."""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, Literal, TypeAlias

from pydantic import ConfigDict, Field, JsonValue

from ome.api.base import KEEPS_UNKNOWN, ApiObject, Defaulted, Model
from ome.api.component import (
    AcceleratorSelector,
    DecoderSpec,
    EngineSpec,
    RouterSpec,
    ScalingPolicy,
)
from ome.api.condition import KnativeCondition
from ome.api.scalars import (
    AtomicStrings,
    Int,
    Int32,
    Int64,
    JsonObject,
    Schema,
    TextMap,
    Timestamp,
)

__all__ = [
    "AcceleratorSelection",
    "Addressable",
    "ComponentStatusSpec",
    "InferenceService",
    "InferenceServiceSpec",
    "InferenceServiceStatus",
    "ModelCopies",
    "ModelFailure",
    "ModelOverlayRef",
    "ModelRef",
    "ModelRevisionStates",
    "ModelStatus",
    "PlacementSpec",
    "RolloutSpec",
    "RoutingSpec",
    "ServingRuntimeRef",
    "TrafficSpec",
]

_PAIRING_TOKEN: Final = "^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"


class ModelOverlayRef(Defaulted):
    """An extra model mounted beside the main one (spec: api.md 4.2)."""

    name: str
    kind: str = "ClusterBaseModel"
    api_group: str = "ome.io"


class ModelRef(Defaulted):
    """The model to serve (spec: api.md 4.2)."""

    name: str
    kind: str = "ClusterBaseModel"
    api_group: str = "ome.io"
    fine_tuned_weights: AtomicStrings | None = None
    overlays: (
        Annotated[
            list[ModelOverlayRef],
            Field(
                json_schema_extra={
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                }
            ),
        ]
        | None
    ) = None


class ServingRuntimeRef(Defaulted):
    """The runtime to use; `auto_sync` false pins it to a stored revision (spec: api.md 4.3)."""

    name: str
    kind: str = "ClusterServingRuntime"
    api_group: str = "ome.io"
    auto_sync: bool = True
    revision: str | None = None


class TrafficSpec(Model):
    """Load balancing on generated routes (spec: api.md 4.10); more fields are kept."""

    model_config = KEEPS_UNKNOWN

    algorithm: Literal["RoundRobin", "LeastRequest", "Random", "ConsistentHash"] | None = None
    consistent_hash: JsonObject | None = None
    endpoint_override: JsonObject | None = None


class RolloutSpec(Model):
    """Groups of components that roll out together (spec: api.md 4.10); more fields are kept."""

    model_config = KEEPS_UNKNOWN

    groups: Annotated[list[JsonObject], Field(max_length=3)] | None = None
    group_ordering: Literal["Sequential", "Concurrent"] | None = None
    pairing_protocol: (
        Annotated[
            str,
            Field(max_length=63, json_schema_extra={"pattern": _PAIRING_TOKEN}),
        ]
        | None
    ) = None


class PlacementSpec(Model):
    """Choice of clusters (spec: api.md 4.10); more fields are kept unread."""

    model_config = KEEPS_UNKNOWN

    policy: Literal["Legacy", "ClusterAffinity"] | None = None
    mode: Literal["Single", "All", "Split", "SplitByCapacity"] | None = None
    capacity_factors: JsonObject | None = None


class RoutingSpec(Model):
    """Routing overrides of one service across clusters (spec: api.md 4.10)."""

    model_config = KEEPS_UNKNOWN

    capacity_factors: JsonObject | None = None


_RULES: Final[list[JsonValue]] = [
    {
        "rule": (
            "!(has(oldSelf.placement) && has(oldSelf.placement.policy)"
            " && oldSelf.placement.policy == 'ClusterAffinity') || (has(self.placement)"
            " && has(self.placement.policy) && self.placement.policy == 'ClusterAffinity')"
        ),
        "message": "placement policy ClusterAffinity cannot be removed or changed",
    },
    {
        "rule": (
            "!(has(self.routing) && has(self.routing.capacityFactors)"
            " && has(self.placement) && has(self.placement.capacityFactors))"
        ),
        "message": "capacityFactors can be set in routing or in placement, not in both",
    },
]


class InferenceServiceSpec(Model):
    """The request (spec: api.md 4.1); admission needs a model or a runtime."""

    model_config = ConfigDict(json_schema_extra={"x-kubernetes-validations": _RULES})

    deployment_mode: Literal["OMENative", "RawDeployment"] | None = None
    engine: EngineSpec | None = None
    decoder: DecoderSpec | None = None
    router: RouterSpec | None = None
    model: ModelRef | None = None
    runtime: ServingRuntimeRef | None = None
    accelerator_selector: AcceleratorSelector | None = None
    scaling_policy: ScalingPolicy | None = None
    traffic: TrafficSpec | None = None
    rollout: RolloutSpec | None = None
    placement: PlacementSpec | None = None
    routing: RoutingSpec | None = None
    replica_refs: JsonObject | None = None


class Addressable(Model):
    """An endpoint, in Knative's words (spec: api.md 5.1)."""

    name: str | None = None
    url: str | None = None
    ca_certs: str | None = Field(default=None, alias="CACerts")
    audience: str | None = None


class AcceleratorSelection(Model):
    """The accelerator class that was chosen for a component (spec: api.md 5.2)."""

    model_config = ConfigDict(json_schema_extra={"required": ["acceleratorClass"]})

    accelerator_class: str | None = None
    reason: str | None = None
    node_selector: TextMap | None = None
    resource_requests: TextMap | None = None


class ComponentStatusSpec(Model):
    """State of one component (spec: api.md 5.2)."""

    url: str | None = None
    rest_url: str | None = Field(default=None, alias="restURL")
    address: Addressable | None = None
    selected_accelerator: AcceleratorSelection | None = None
    autoscaler: JsonObject | None = None
    scale_target_ref: JsonObject | None = None
    latest_ready_revision: str | None = None
    latest_rolledout_revision: str | None = None
    previous_rolledout_revision: str | None = None
    rollout_phase: str | None = None
    traffic: list[JsonObject] | None = None
    lifecycle: JsonObject | None = None
    canary: JsonObject | None = None


_LoadState: TypeAlias = Annotated[
    str,
    Schema(
        {
            "type": "string",
            "enum": ["", "Pending", "Standby", "Loading", "Loaded", "FailedToLoad"],
        }
    ),
]


class ModelRevisionStates(Defaulted):
    """State of the model in use and of the one wanted (spec: api.md 5.3)."""

    model_config = ConfigDict(json_schema_extra={"required": ["activeModelState"]})

    active_model_state: _LoadState = "Pending"
    target_model_state: _LoadState = ""


class ModelCopies(Defaulted):
    """How many copies loaded and failed (spec: api.md 5.3)."""

    model_config = ConfigDict(json_schema_extra={"required": ["failedCopies"]})

    failed_copies: Int = 0
    total_copies: Int | None = None


_Reason: TypeAlias = Annotated[
    str,
    Schema(
        {
            "type": "string",
            "enum": [
                "BaseModelNotReady",
                "BaseModelNotFound",
                "ModelLoadFailed",
                "RuntimeUnhealthy",
                "RuntimeDisabled",
                "NoSupportingRuntime",
                "RuntimeNotRecognized",
            ],
        }
    ),
]


class ModelFailure(Model):
    """The last failure to load the model (spec: api.md 5.3)."""

    location: str | None = None
    reason: _Reason | None = None
    message: str | None = None
    model_revision_name: str | None = None
    time: Timestamp | None = None
    exit_code: Int32 | None = None


_Transition: TypeAlias = Annotated[
    str,
    Schema(
        {
            "type": "string",
            "enum": ["", "UpToDate", "InProgress", "BlockedByFailedLoad", "InvalidSpec"],
        }
    ),
]


class ModelStatus(Model):
    """Load state of the model; unset without a model (spec: api.md 5.3)."""

    transition_status: _Transition | None = None
    model_revision_states: ModelRevisionStates | None = None
    model_copies: ModelCopies | None = None
    last_failure_info: ModelFailure | None = None


class InferenceServiceStatus(Model):
    """What became of the service (spec: api.md 5.1); unknown fields are kept, in the CRD too."""

    model_config = KEEPS_UNKNOWN

    observed_generation: Int64 | None = None
    conditions: list[KnativeCondition] | None = None
    annotations: TextMap | None = None
    url: str | None = None
    address: Addressable | None = None
    addresses: (
        Annotated[list[Addressable], Field(json_schema_extra={"x-kubernetes-list-type": "atomic"})]
        | None
    ) = None
    components: dict[str, ComponentStatusSpec] | None = None
    model_status: ModelStatus | None = None
    pinned_revision_name: str | None = None
    last_runtime_sync_token: str | None = None
    mounted_overlays: list[JsonObject] | None = None
    migration_history: (
        Annotated[list[JsonObject], Field(json_schema_extra={"x-kubernetes-list-type": "atomic"})]
        | None
    ) = None
    traffic: JsonObject | None = None
    canary: JsonObject | None = None
    placement: JsonObject | None = None
    rollout: JsonObject | None = None
    rollout_coordination: JsonObject | None = None


class InferenceService(ApiObject):
    """A model served from a runtime, in a namespace (spec: api.md 2)."""

    KIND: ClassVar[str] = "InferenceService"
    PLURAL: ClassVar[str] = "inferenceservices"
    NAMESPACED: ClassVar[bool] = True

    spec: InferenceServiceSpec | None = None
    status: InferenceServiceStatus | None = None
