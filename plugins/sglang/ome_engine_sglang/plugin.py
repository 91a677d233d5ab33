"""The hooks of the SGLang engine."""

from __future__ import annotations

from typing import Final

from ome.engines import (
    CONTRACT,
    Container,
    Detection,
    Dialect,
    EngineInfo,
    Finding,
    PodView,
    Profile,
    hookimpl,
)
from ome_engine_sglang.detect import detect
from ome_engine_sglang.findings import find
from ome_engine_sglang.flags import dialect

_PROBE: Final = {"httpGet": {"path": "/health", "port": 30000}, "timeoutSeconds": 30}

PROBES: Final = Profile(
    name="sglang-http",
    probes={
        "readinessProbe": {
            **_PROBE,
            "initialDelaySeconds": 60,
            "periodSeconds": 30,
            "successThreshold": 1,
            "failureThreshold": 5,
        },
        "livenessProbe": {
            **_PROBE,
            "initialDelaySeconds": 0,
            "periodSeconds": 60,
            "failureThreshold": 5,
        },
        "startupProbe": {
            **_PROBE,
            "initialDelaySeconds": 60,
            "periodSeconds": 30,
            "failureThreshold": 60,
        },
    },
)
METRICS: Final = Profile(
    name="prometheus",
    annotations={
        "prometheus.io/scrape": "true",
        "prometheus.io/port": "30000",
        "prometheus.io/path": "/metrics",
    },
)


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
    return [PROBES, METRICS]


@hookimpl
def ome_findings(view: PodView) -> list[Finding]:
    """What fails or hurts in a pod that runs SGLang."""
    return find(view)
