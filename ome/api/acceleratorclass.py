"""AcceleratorClass: a kind of accelerator, how to find its nodes and what it can do."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from ome.api.base import ApiObject, Defaulted, Model
from ome.api.condition import AtomicConditions
from ome.api.scalars import (
    AtomicStrings,
    Int32,
    Int64,
    JsonObject,
    Quantity,
    TextMap,
    Timestamp,
)
from ome.api.shapes import Affinity

__all__ = [
    "AcceleratorCapabilities",
    "AcceleratorClass",
    "AcceleratorClassSpec",
    "AcceleratorClassStatus",
    "AcceleratorCost",
    "AcceleratorDiscovery",
    "AcceleratorLatency",
    "AcceleratorPerformance",
    "AcceleratorResource",
]


class AcceleratorDiscovery(Model):
    """How to find the nodes of the class (spec: api.md 8.1)."""

    node_selector: TextMap | None = None
    affinity: Affinity | None = None
    pci_vendor_id: str | None = Field(default=None, alias="pciVendorID")
    device_ids: AtomicStrings | None = Field(default=None, alias="deviceIDs")


class AcceleratorLatency(Model):
    """Latencies; no rule reads them."""

    average_millis: Int64 | None = None
    maximum_millis: Int64 | None = None


class AcceleratorPerformance(Model):
    """Peak rates by precision (spec: api.md 8.1)."""

    fp32_tflops: Int64 | None = Field(default=None, alias="fp32Tflops")
    fp16_tflops: Int64 | None = Field(default=None, alias="fp16Tflops")
    int8_tops: Int64 | None = Field(default=None, alias="int8Tops")
    int4_tops: Int64 | None = Field(default=None, alias="int4Tops")
    latency: AcceleratorLatency | None = None


class AcceleratorCapabilities(Model):
    """What the accelerator can do (spec: api.md 8.1); a bare memory number means bytes."""

    memory_gb: Quantity | None = Field(default=None, alias="memoryGB")
    compute_capability: str | None = None
    memory_bandwidth_gbps: Quantity | None = Field(default=None, alias="memoryBandwidthGBps")
    features: AtomicStrings | None = None
    performance: AcceleratorPerformance | None = None
    clock_speed_mhz: Int32 | None = Field(default=None, alias="clockSpeedMHz")
    level_zero_version: str | None = None


class AcceleratorResource(Defaulted):
    """An extended resource and how much of it a pod requests (spec: api.md 8.1)."""

    name: str
    quantity: Quantity = "1"
    divisible: bool | None = None


class AcceleratorCost(Model):
    """Prices, for the policy Cheapest (spec: api.md 8.1)."""

    per_hour: Quantity | None = None
    spot_per_hour: Quantity | None = None
    per_million_tokens: Quantity | None = None
    tier: str | None = None


class AcceleratorClassSpec(Model):
    """The class (spec: api.md 8.1)."""

    discovery: AcceleratorDiscovery
    capabilities: AcceleratorCapabilities
    resources: (
        Annotated[
            list[AcceleratorResource],
            Field(json_schema_extra={"x-kubernetes-list-type": "atomic"}),
        ]
        | None
    ) = None
    cost: AcceleratorCost | None = None
    vendor: str | None = None
    family: str | None = None
    model: str | None = None
    integration: JsonObject | None = None


class AcceleratorClassStatus(Model):
    """The nodes of the class (spec: api.md 8.2)."""

    nodes: AtomicStrings | None = None
    available_nodes: Int32 | None = None
    last_updated: Timestamp | None = None
    total_accelerators: Int32 | None = None
    available_accelerators: Int32 | None = None
    conditions: AtomicConditions | None = None


class AcceleratorClass(ApiObject):
    """A kind of accelerator in the cluster (spec: api.md 2)."""

    KIND: ClassVar[str] = "AcceleratorClass"
    PLURAL: ClassVar[str] = "acceleratorclasses"
    NAMESPACED: ClassVar[bool] = False

    spec: AcceleratorClassSpec | None = None
    status: AcceleratorClassStatus | None = None
