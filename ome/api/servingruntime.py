"""ServingRuntime and ClusterServingRuntime: how a family of models is served."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from ome.api.base import ApiObject, Model
from ome.api.component import DecoderConfig, EngineConfig, RouterConfig, ScalingPolicy
from ome.api.condition import Conditions
from ome.api.format import DiffusionPipelineSpec, ModelFormat, ModelFrameworkSpec
from ome.api.pod import Affinity, Containers, ImagePullSecrets, Tolerations, Volumes
from ome.api.scalars import AtomicStrings, NaturalInt64, PositiveInt32, TextMap

__all__ = [
    "AcceleratorModelConfig",
    "AcceleratorRequirements",
    "ClusterServingRuntime",
    "ModelSizeRange",
    "ServingRuntime",
    "ServingRuntimeSpec",
    "ServingRuntimeStatus",
    "SupportedModelFormat",
    "TensorParallelismOverride",
]


class ModelSizeRange(Model):
    """Smallest and largest model, as a number with M, B or T (spec: api.md 6.1)."""

    min: str | None = None
    max: str | None = None


class TensorParallelismOverride(Model):
    """Parallelism sizes for one accelerator class (spec: api.md 6.4)."""

    tensor_parallel_size: NaturalInt64 | None = None
    pipeline_parallel_size: NaturalInt64 | None = None
    data_parallel_size: NaturalInt64 | None = None


class AcceleratorModelConfig(Model):
    """What an accelerator class changes in the runtime (spec: api.md 6.4)."""

    tensor_parallelism_override: TensorParallelismOverride | None = None
    runtime_args_override: AtomicStrings | None = None
    environment_override: TextMap | None = None
    min_memory_per_billion_params: NaturalInt64 | None = None


class SupportedModelFormat(Model):
    """One kind of model that the runtime serves (spec: api.md 6.2)."""

    name: str | None = None
    model_format: ModelFormat
    model_framework: ModelFrameworkSpec
    model_architecture: str | None = None
    quantization: str | None = None
    diffusion_pipeline: DiffusionPipelineSpec | None = None
    auto_select: bool | None = None
    priority: PositiveInt32 | None = None
    accelerator_config: dict[str, AcceleratorModelConfig] | None = None
    model_cache_providers: AtomicStrings | None = None
    version: str | None = None
    model_type: str | None = None


class AcceleratorRequirements(Model):
    """The accelerator classes the runtime runs on (spec: api.md 6.5)."""

    accelerator_classes: AtomicStrings | None = None
    min_memory: NaturalInt64 | None = None
    min_compute_performance_tflops: NaturalInt64 | None = Field(
        default=None, alias="minComputePerformanceTFLOPS"
    )
    min_architecture_version: str | None = None
    required_features: AtomicStrings | None = None
    preferred_precisions: AtomicStrings | None = None


class ServingRuntimeSpec(Model):
    """The template and what it is for (spec: api.md 6.1).

    From `containers` on, fields are upstream's legacy: read, merged and kept, not used for pods.
    """

    supported_model_formats: (
        Annotated[
            list[SupportedModelFormat],
            Field(json_schema_extra={"x-kubernetes-list-type": "atomic"}),
        ]
        | None
    ) = None
    model_size_range: ModelSizeRange | None = None
    disabled: bool | None = None
    engine_config: EngineConfig | None = None
    decoder_config: DecoderConfig | None = None
    router_config: RouterConfig | None = None
    accelerator_requirements: AcceleratorRequirements | None = None
    scaling_policy: ScalingPolicy | None = None
    protocol_versions: AtomicStrings | None = None
    node_selector: TextMap | None = None
    scheduler_name: str | None = None
    containers: Containers | None = None
    volumes: Volumes | None = None
    affinity: Affinity | None = None
    tolerations: Tolerations | None = None
    labels: TextMap | None = None
    annotations: TextMap | None = None
    image_pull_secrets: ImagePullSecrets | None = None
    host_ipc: bool | None = Field(default=None, alias="hostIPC")
    dns_policy: str | None = None
    host_network: bool | None = None


class ServingRuntimeStatus(Model):
    """How inheritance went (spec: api.md 6.6)."""

    inheritance_chain: AtomicStrings | None = None
    conditions: Conditions | None = None


class ServingRuntime(ApiObject):
    """A runtime for the services of its namespace (spec: api.md 2)."""

    KIND: ClassVar[str] = "ServingRuntime"
    PLURAL: ClassVar[str] = "servingruntimes"
    NAMESPACED: ClassVar[bool] = True

    spec: ServingRuntimeSpec | None = None
    status: ServingRuntimeStatus | None = None


class ClusterServingRuntime(ApiObject):
    """A runtime for the services of every namespace (spec: api.md 2)."""

    KIND: ClassVar[str] = "ClusterServingRuntime"
    PLURAL: ClassVar[str] = "clusterservingruntimes"
    NAMESPACED: ClassVar[bool] = False

    spec: ServingRuntimeSpec | None = None
    status: ServingRuntimeStatus | None = None
