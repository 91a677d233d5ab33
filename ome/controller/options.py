"""The settings of the controller process. Source: OME controller flags (v1.3)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from ome.controller.leading import Times
from ome.snapshot import DEFAULT_OME_NAMESPACE

__all__ = ["Address", "Options", "parse_address", "parse_duration"]

_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION: Final = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?(?:ms|s|m|h))+", re.ASCII)
_PART: Final = re.compile(r"([0-9.]+)(ms|s|m|h)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen; an empty host means every interface, port 0 any free one."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Options:
    """Settings, in seconds where they are times. `qps` 0 means no limit."""

    kubeconfig: str | None = None
    context: str | None = None
    ome_namespace: str = DEFAULT_OME_NAMESPACE
    health: Address | None = Address("", 8081)
    metrics: Address | None = Address("", 8080)
    leader_elect: bool = False
    election_namespace: str = DEFAULT_OME_NAMESPACE
    times: Times = field(default_factory=Times)
    workers: int = 1
    qps: float = 0.0
    burst: int = 0
    resync: float = 36000.0
    retention: int = 10
    grace: float = 86400.0
    drain: float = 25.0


def parse_duration(text: str) -> float:
    """Seconds of a Go duration such as `1m30s`; `0` needs no unit. Raises ValueError."""
    if text == "0":
        return 0.0
    if not _DURATION.fullmatch(text):
        raise ValueError(f'"{text}" is no duration such as 30s, 5m or 24h')
    return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))


def parse_address(text: str) -> Address | None:
    """`:8081`, `127.0.0.1:8081` or `[::1]:8081`; `0` for not listening. Raises ValueError."""
    if text == "0":
        return None
    host, found, port = text.rpartition(":")
    if not found or not port.isdecimal() or int(port) > 65535:
        raise ValueError(f'"{text}" is no address such as :8081, or 0 to listen nowhere')
    return Address(host.removeprefix("[").removesuffix("]"), int(port))
