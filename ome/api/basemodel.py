"""BaseModel and ClusterBaseModel: weights that can be served, and where they are."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import ConfigDict, Field

from ome.api.base import ApiObject, Model
from ome.api.condition import Conditions
from ome.api.format import DiffusionPipelineSpec, ModelFormat, ModelFrameworkSpec
from ome.api.scalars import (
    AtomicStrings,
    AtomicText,
    Int32,
    Int64,
    JsonObject,
    Schema,
    TextMap,
    Timestamp,
)
from ome.api.shapes import NodeAffinity

__all__ = [
    "BaseModel",
    "BaseModelSpec",
    "ClusterBaseModel",
    "ModelCache",
    "ModelStatusSpec",
    "StorageSpec",
]


class StorageSpec(Model):
    """Where the weights are and which nodes keep them (spec: api.md 7.2)."""

    storage_uri: str
    path: str | None = None
    key: str | None = None
    parameters: TextMap | None = None
    schema_path: str | None = None
    node_selector: AtomicText | None = None
    node_affinity: NodeAffinity | None = None
    download_policy: Literal["AlwaysDownload", "ReuseIfExists"] | None = None


class BaseModelSpec(Model):
    """What the model is (spec: api.md 7.1); the agent fills in what is unset."""

    model_format: ModelFormat | None = None
    model_framework: ModelFrameworkSpec | None = None
    model_architecture: str | None = None
    quantization: str | None = None
    model_parameter_size: str | None = None
    model_type: str | None = None
    diffusion_pipeline: DiffusionPipelineSpec | None = None
    storage: StorageSpec
    disabled: bool | None = None
    distribution: Literal["PerNode", "Sharded"] | None = None
    model_capabilities: AtomicStrings | None = None
    api_capabilities: AtomicStrings | None = None
    model_configuration: JsonObject | None = None
    max_tokens: Int32 | None = None
    serving_mode: AtomicStrings | None = None
    additional_metadata: TextMap | None = None
    display_name: str | None = None
    version: str | None = None
    vendor: str | None = None
    compartment_id: str | None = Field(default=None, alias="compartmentID")


_State: TypeAlias = Annotated[
    str,
    Schema(
        {
            "type": "string",
            "enum": ["Creating", "Importing", "In_Transit", "In_Training", "Ready", "Failed"],
        }
    ),
]


class ModelCache(Model):
    """Cache of the weights; never set yet (spec: api.md 7.3)."""

    backend: str | None = None
    source_uri: str | None = None


class ModelStatusSpec(Model):
    """Where the model is ready (spec: api.md 7.3)."""

    model_config = ConfigDict(json_schema_extra={"required": ["state"]})

    state: _State | None = None
    nodes_ready: AtomicStrings | None = None
    nodes_failed: AtomicStrings | None = None
    lifecycle: str | None = None
    observed_generation: Int64 | None = None
    last_reconcile_time: Timestamp | None = None
    conditions: Conditions | None = None
    cache: ModelCache | None = None


class BaseModel(ApiObject):
    """A model for the services of its namespace (spec: api.md 2)."""

    KIND: ClassVar[str] = "BaseModel"
    PLURAL: ClassVar[str] = "basemodels"
    NAMESPACED: ClassVar[bool] = True

    spec: BaseModelSpec | None = None
    status: ModelStatusSpec | None = None


class ClusterBaseModel(ApiObject):
    """A model for the services of every namespace (spec: api.md 2)."""

    KIND: ClassVar[str] = "ClusterBaseModel"
    PLURAL: ClassVar[str] = "clusterbasemodels"
    NAMESPACED: ClassVar[bool] = False

    spec: BaseModelSpec | None = None
    status: ModelStatusSpec | None = None
