"""The rules about probes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ome.engines import Finding

Found = Callable[..., list[Finding]]
NO_PROBES: dict[str, Any] = {"startupProbe": None, "readinessProbe": None, "livenessProbe": None}
OLD, NEW = "lmsysorg/sglang:v0.4.10.post2", "lmsysorg/sglang:v0.5.23"
QUIET = [{"name": "SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION", "value": "false"}]


def http(port: Any, path: str = "/health", timeout: int | None = 30, **more: Any) -> dict[str, Any]:
    probe: dict[str, Any] = {"httpGet": {"path": path, "port": port, **more}}
    return probe if timeout is None else {**probe, "timeoutSeconds": timeout}


# name, probe, other overrides, whether the port is wrong
PORTS: list[tuple[str, dict[str, Any], dict[str, Any], bool]] = [
    ("right", http(8080), {}, False),
    ("right as text", http("8080"), {}, False),
    ("wrong", http(30000), {}, True),
    ("default", http(30000), {"args": ["--host=0.0.0.0"]}, False),
    ("not the default", http(8080), {"args": ["--host=0.0.0.0"]}, True),
    ("default may be in a file", http(8080), {"args": ["--config=a.yaml"]}, False),
    ("by reference", http(80), {"args": ["--host=0.0.0.0", "--port=$(PORT)"]}, False),
    (
        "of the diffusion server",
        http(1),
        {"command": ["sglang", "serve"], "args": ["m", "--host=::", "--num-gpus=1"]},
        False,
    ),
    ("by name", http("http1"), {}, False),
    (
        "by the name of another port",
        http("m"),
        {"ports": [{"name": "m", "containerPort": 1}]},
        True,
    ),
    ("by an unknown name", http("nothing"), {}, True),
    ("socket", {"tcpSocket": {"port": 1}}, {}, True),
    ("gRPC", {"grpc": {"port": 1}}, {}, True),
    ("command", {"exec": {"command": ["true"]}}, {}, False),
    ("bootstrap", http(8998), {}, False),
    ("own bootstrap", http(9000), {"more": ["--disaggregation-bootstrap-port=9000"]}, False),
    ("native gRPC", {"grpc": {"port": 50051}}, {"more": ["--grpc-port", "50051"]}, False),
    ("metrics of gRPC mode", http(8081), {"more": ["--smg-grpc-mode"]}, False),
    ("elsewhere", http(1, host="example.org"), {}, False),
    (
        "a neighbour's",
        http(15021),
        {"pod": {"containers": [{"name": "proxy", "ports": [{"containerPort": 15021}]}]}},
        False,
    ),
]


@pytest.mark.parametrize(
    "probe, overrides, is_wrong", [case[1:] for case in PORTS], ids=[c[0] for c in PORTS]
)
def test_port(
    found: Found, probe: dict[str, Any], overrides: dict[str, Any], is_wrong: bool
) -> None:
    findings = found(**{**NO_PROBES, "readinessProbe": probe, **overrides})
    wrong = [one for one in findings if one.code == "SGLangProbePort"]
    assert bool(wrong) is is_wrong
    assert all(one.path.startswith("readinessProbe.") for one in wrong)


def test_port_message(found: Found) -> None:
    (finding,) = found(**{**NO_PROBES, "livenessProbe": http(30000)})
    assert finding.message == "the probe asks port 30000, SGLang listens on 8080"
    assert (finding.path, finding.fix) == ("livenessProbe.httpGet.port", "set it to 8080")
    (finding,) = found(**{**NO_PROBES, "livenessProbe": http("nothing")})
    assert finding.message == 'the probe asks the port "nothing", which the container doesn\'t name'


# name, probe, other overrides, how the timeout is named in the message ("" for no finding)
TIMEOUTS: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("enough", http(8080, timeout=2), {}, ""),
    ("too short", http(8080, timeout=1), {}, "1 s"),
    ("by default", http(8080, timeout=None), {}, "1 s, its default"),
    ("by default, with a query", http(8080, "/health?x=1", None), {}, "1 s, its default"),
    ("cheap path", http(8080, "/ready", None), {}, ""),
    ("other kind", {"tcpSocket": {"port": 8080}}, {}, ""),
    ("bare health before 0.5.1", http(8080, timeout=1), {"image": OLD}, ""),
    ("generating before 0.5.1", http(8080, "/health_generate", 1), {"image": OLD}, "1 s"),
    ("made cheap", http(8080, timeout=1), {"image": NEW, "env": QUIET}, ""),
    ("made cheap, version unknown", http(8080, timeout=1), {"image": "sglang", "env": QUIET}, ""),
    (
        "not made cheap by 0.5.5.post3",
        http(8080, timeout=1),
        {"image": "lmsysorg/sglang:v0.5.5.post3", "env": QUIET},
        "1 s",
    ),
    (
        "never cheap when generating",
        http(8080, "/health_generate", 1),
        {"image": NEW, "env": QUIET},
        "1 s",
    ),
    ("follower", http(8080, timeout=1), {"more": ["--nnodes=2", "--node-rank=1"]}, ""),
    ("leader", http(8080, timeout=1), {"more": ["--nnodes=2", "--node-rank=0"]}, "1 s"),
]


@pytest.mark.parametrize(
    "probe, overrides, shown", [case[1:] for case in TIMEOUTS], ids=[c[0] for c in TIMEOUTS]
)
def test_timeout(
    found: Found, probe: dict[str, Any], overrides: dict[str, Any], shown: str
) -> None:
    findings = found(**{**NO_PROBES, "startupProbe": probe, **overrides})
    short = [one for one in findings if one.code == "SGLangProbeTimeout"]
    assert bool(short) is bool(shown)
    for one in short:
        assert one.path == "startupProbe.timeoutSeconds"
        assert one.message.endswith(f"the probe gives up after {shown}")
