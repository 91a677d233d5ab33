"""The hooks of the TokenSpeed engine."""

from __future__ import annotations

from typing import Final

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
from ome_engine_tokenspeed.detect import detect
from ome_engine_tokenspeed.findings import find
from ome_engine_tokenspeed.flags import TABLE
from ome_engine_tokenspeed.sizes import geometry_of

_PORT: Final = 8000

PROBES: Final = Profile(
    name="tokenspeed-http",
    probes={
        "startupProbe": {
            "httpGet": {"path": "/readiness", "port": _PORT},
            "periodSeconds": 10,
            "timeoutSeconds": 5,
            "failureThreshold": 360,
        },
        "readinessProbe": {
            "httpGet": {"path": "/readiness", "port": _PORT},
            "periodSeconds": 10,
            "timeoutSeconds": 5,
            "failureThreshold": 3,
        },
        "livenessProbe": {
            "httpGet": {"path": "/liveness", "port": _PORT},
            "periodSeconds": 30,
            "timeoutSeconds": 5,
            "failureThreshold": 3,
        },
    },
)
"""What the gateway answers at once. Loading may take an hour, as long as `serve` itself waits."""


@hookimpl
def ome_describe() -> EngineInfo:
    """The engine's name and contract."""
    return EngineInfo("tokenspeed", CONTRACT, "TokenSpeed behind its gateway")


@hookimpl
def ome_detect(container: Container) -> Detection | None:
    """TokenSpeed by its command, or else by its image."""
    return detect(container)


@hookimpl
def ome_dialect(version: str) -> Dialect:
    """TokenSpeed's command line: flags as they are registered, and no others."""
    return TABLE.dialect(version)


@hookimpl
def ome_profiles() -> list[Profile]:
    """Probes on the gateway."""
    return [PROBES]


@hookimpl
def ome_findings(view: PodView) -> list[Finding]:
    """What fails or hurts in a pod that runs TokenSpeed."""
    return find(view)


@hookimpl
def ome_geometry(view: PodView) -> Geometry | None:
    """How TokenSpeed spreads the model in a pod."""
    return geometry_of(view)
