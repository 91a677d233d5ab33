"""What a model is and what a runtime serves: format, framework and diffusion pipeline.

Models and runtimes describe themselves in the same words, so that matching compares like with like.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ome.api.base import Defaulted, Model
from ome.api.scalars import Int64

__all__ = ["DiffusionPipelineSpec", "ModelFormat", "ModelFrameworkSpec", "PipelineComponent"]


class ModelFormat(Defaulted):
    """Format of model weights, with version, comparison and weight (spec: api.md 6.3)."""

    name: str
    version: str | None = None
    operator: str = "Equal"
    weight: Int64 = 1


class ModelFrameworkSpec(Defaulted):
    """Framework of a model: the fields of a format (spec: api.md 6.3)."""

    name: str
    version: str | None = None
    operator: str = "Equal"
    weight: Int64 = 1


class PipelineComponent(Model):
    """One part of a diffusion pipeline."""

    library: str | None = None
    type: str | None = None


class DiffusionPipelineSpec(Model):
    """The parts of a diffusion pipeline by role (spec: api.md 6.4)."""

    class_name: str | None = None
    scheduler: PipelineComponent | None = None
    text_encoder: PipelineComponent | None = None
    tokenizer: PipelineComponent | None = None
    transformer: PipelineComponent | None = None
    vae: PipelineComponent | None = None
    additional_components: (
        Annotated[
            dict[str, PipelineComponent],
            Field(json_schema_extra={"x-kubernetes-map-type": "atomic"}),
        ]
        | None
    ) = None
