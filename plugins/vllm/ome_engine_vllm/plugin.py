"""The hooks of the vLLM engine."""

from __future__ import annotations

from ome.engines import (
    CONTRACT,
    Container,
    Detection,
    Dialect,
    EngineInfo,
    Finding,
    Geometry,
    PodView,
    Profile,
    hookimpl,
)
from ome.engines.kit import PROMETHEUS, http_probes
from ome_engine_vllm.detect import detect
from ome_engine_vllm.findings import find
from ome_engine_vllm.flags import TABLE
from ome_engine_vllm.geometry import geometry_of


@hookimpl
def ome_describe() -> EngineInfo:
    """The engine's name and contract."""
    return EngineInfo("vllm", CONTRACT, "vLLM's OpenAI-compatible server")


@hookimpl
def ome_detect(container: Container) -> Detection | None:
    """vLLM by its command, or else by its image."""
    return detect(container)


@hookimpl
def ome_dialect(version: str) -> Dialect:
    """vLLM's command line: argparse with underscores, dotted flags and short forms."""
    return TABLE.dialect(version)


@hookimpl
def ome_profiles() -> list[Profile]:
    """Probes on `/health`, and Prometheus scraping."""
    return [http_probes("vllm-http"), PROMETHEUS]


@hookimpl
def ome_findings(view: PodView) -> list[Finding]:
    """What fails or hurts in a pod that runs vLLM."""
    return find(view)


@hookimpl
def ome_geometry(view: PodView) -> Geometry | None:
    """How vLLM spreads the model in a pod."""
    return geometry_of(view)
