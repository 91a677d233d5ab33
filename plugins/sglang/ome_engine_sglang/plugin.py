"""The hooks of the SGLang engine."""

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
from ome_engine_sglang.detect import detect
from ome_engine_sglang.findings import find
from ome_engine_sglang.flags import dialect
from ome_engine_sglang.geometry import geometry_of


@hookimpl
def ome_describe() -> EngineInfo:
    """The engine's name and contract."""
    return EngineInfo("sglang", CONTRACT, "SGLang's OpenAI-compatible server")


@hookimpl
def ome_detect(container: Container) -> Detection | None:
    """SGLang by its command, or else by its image."""
    return detect(container)


@hookimpl
def ome_dialect(version: str) -> Dialect:
    """SGLang's command line: plain argparse, with prefixes."""
    return dialect(version)


@hookimpl
def ome_profiles() -> list[Profile]:
    """Probes on `/health`, and Prometheus scraping."""
    return [http_probes("sglang-http"), PROMETHEUS]


@hookimpl
def ome_findings(view: PodView) -> list[Finding]:
    """What fails or hurts in a pod that runs SGLang."""
    return find(view)


@hookimpl
def ome_geometry(view: PodView) -> Geometry | None:
    """How SGLang spreads the model over accelerators."""
    return geometry_of(view)
