"""The documented profiles that every engine supplies alike.

Source: OME labels and annotations (v1.3), `runtime.ome.io/probe-profile` and
`runtime.ome.io/observability-profile`.
"""

from __future__ import annotations

from typing import Final

from ome.engines.types import Profile

__all__ = ["PROMETHEUS", "http_probes"]

PROMETHEUS: Final = Profile(
    name="prometheus",
    annotations={
        "prometheus.io/scrape": "true",
        "prometheus.io/port": "30000",
        "prometheus.io/path": "/metrics",
    },
)
"""Scraping of `/metrics`. Engines share it: a profile that several supply must be the same in all."""


def http_probes(name: str) -> Profile:
    """A probe profile that asks for `/health`, with the documented times."""
    probe = {"httpGet": {"path": "/health", "port": 30000}, "timeoutSeconds": 30}
    readiness = {"initialDelaySeconds": 60, "periodSeconds": 30, "successThreshold": 1}
    return Profile(
        name=name,
        probes={
            "readinessProbe": {**probe, **readiness, "failureThreshold": 5},
            "livenessProbe": {
                **probe,
                "initialDelaySeconds": 0,
                "periodSeconds": 60,
                "failureThreshold": 5,
            },
            "startupProbe": {
                **probe,
                "initialDelaySeconds": 60,
                "periodSeconds": 30,
                "failureThreshold": 60,
            },
        },
    )
