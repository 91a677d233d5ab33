"""Every rule: the bad pod that it finds, and the good one that it leaves alone."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ome_engine_tokenspeed
from ome.engines import Finding, Geometry, PodView, Severity
from ome_engine_tokenspeed.findings import RULES, find
from ome_engine_tokenspeed.sizes import geometry_of

Found = Callable[..., list[Finding]]
WORKER_COMMAND = ["python3", "-m", "smg_grpc_servicer.tokenspeed"]
METRICS = {"httpGet": {"path": "/metrics", "port": 29000}}
WORKER = ["--nnodes=2", "--node-rank=1", "--dist-init-addr=a:1"]

CASES: list[tuple[str, dict[str, Any], list[tuple[str, str]]]] = [
    ("well-behaved", {}, []),
    (
        "a script",
        {"command": ["sh", "-c", "a; ts serve m"], "args": []},
        [("TokenSpeedOpaque", "command[2]")],
    ),
    ("loopback", {"more": ["--host=127.0.0.1"]}, [("TokenSpeedLoopback", "args[3]")]),
    (
        "the default port",
        {"args": ["--served-model-name=m"], "readinessProbe": {"tcpSocket": {"port": 8000}}},
        [],
    ),
    (
        "another port",
        {"readinessProbe": {"tcpSocket": {"port": 9}}},
        [("TokenSpeedProbePort", "readinessProbe.tcpSocket.port")],
    ),
    ("control port", {"readinessProbe": {"tcpSocket": {"port": 8081}}}, []),
    ("metrics port", {"more": ["--prometheus-port=29000"], "livenessProbe": METRICS}, []),
    ("a worker", {"more": WORKER}, [("TokenSpeedWorkerProbe", "readinessProbe.httpGet")]),
    ("a worker without probes", {"more": WORKER, "readinessProbe": None}, []),
    ("metrics nowhere", {"more": ["--enable-metrics"]}, [("TokenSpeedMetricsPort", "args[3]")]),
    ("metrics somewhere", {"more": ["--enable-metrics", "--prometheus-port", "29000"]}, []),
    ("a short stop", {"pod": {"terminationGracePeriodSeconds": 60}}, [("TokenSpeedDrain", "")]),
    (
        "a long drain",
        {"more": ["--drain-timeout=300"], "pod": {"terminationGracePeriodSeconds": 30}},
        [("TokenSpeedDrain", "")],
    ),
    ("a long stop", {"pod": {"terminationGracePeriodSeconds": 61}}, []),
    ("no memory", {"volumeMounts": None}, [("TokenSpeedNoSharedMemory", "volumeMounts")]),
    ("too few", {"accelerators": 2}, [("TokenSpeedTooFewAccelerators", "args[1]")]),
    (
        "data on top",
        {"more": ["--data-parallel-size=2", "--dist-init-addr=a:1"]},
        [("TokenSpeedTooFewAccelerators", "args[1]")],
    ),
    ("the world", {"more": ["--world-size=8"]}, [("TokenSpeedTooFewAccelerators", "args[3]")]),
    (
        "the world on two nodes",
        {"more": ["--world-size=8", "--nnodes=2", "--dist-init-addr=a:1"]},
        [],
    ),
    ("sizes by reference", {"more": ["--world-size=$(N)"]}, []),
    (
        "stages",
        {"more": ["--pipeline-parallel-size=2"], "accelerators": 8},
        [("TokenSpeedPipelineRole", "args[3]")],
    ),
    (
        "stages of a prefill server",
        {
            "more": ["--pipeline-parallel-size=2", "--disaggregation-mode=prefill"],
            "accelerators": 8,
        },
        [],
    ),
    ("nodes without an address", {"more": ["--nnodes=2"]}, [("TokenSpeedNoAddress", "args[3]")]),
    (
        "replicas without an address",
        {"more": ["--data-parallel-size=2"], "accelerators": 8},
        [("TokenSpeedNoAddress", "args[3]")],
    ),
    ("one dash", {"more": ["-tp", "1"]}, [("TokenSpeedFlagSpelling", "args[3]")]),
    ("underscores", {"more": ["--max_model_len=1"]}, [("TokenSpeedFlagSpelling", "args[3]")]),
    ("one word", {"more": ["--max-model-len 1"]}, [("TokenSpeedFlagSpelling", "args[3]")]),
    ("a beginning", {"more": ["--max-model=1"]}, [("TokenSpeedFlagUnknown", "args[3]")]),
    ("mistyped", {"more": ["--max-modle-len=1"]}, [("TokenSpeedFlagUnknown", "args[3]")]),
    ("the gateway's", {"more": ["--policy=cache_aware"]}, []),
    ("of serve itself", {"more": ["--engine-startup-timeout=3600"]}, []),
    (
        "removed",
        {"more": ["--enable-expert-distribution-metrics"]},
        [("TokenSpeedFlagRemoved", "args[3]")],
    ),
    (
        "not yet",
        {"image": "tokenspeed:0.1.0", "more": ["--model-alias=x"]},
        [("TokenSpeedFlagUnknown", "args[3]")],
    ),
    ("version unknown", {"image": "tokenspeed:latest", "more": ["--max-modle-len=1"]}, []),
    ("taken by serve", {"more": ["--headless", "--no-tokenizer-cache-enable-l0"]}, []),
    (
        "no memory for attention",
        {"args": ["--attn-tp-size=4", "--port=8080"], "volumeMounts": None},
        [("TokenSpeedNoSharedMemory", "volumeMounts")],
    ),
    (
        "an engine alone",
        {"command": WORKER_COMMAND, "more": ["--host=0.0.0.0", "--enable-metrics"]},
        [],
    ),
    ("an engine alone, on loopback", {"command": WORKER_COMMAND}, [("TokenSpeedLoopback", "args")]),
    ("repeated", {"more": ["--tp=2"]}, [("TokenSpeedFlagRepeated", "args[3]")]),
    ("both", {"more": ["--attn-tp-size=4"]}, [("TokenSpeedFlagExclusive", "args[3]")]),
]


@pytest.mark.parametrize("overrides, expected", [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_findings(found: Found, overrides: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    assert [(one.code, one.path) for one in found(**overrides)] == expected


def test_notes(found: Found) -> None:
    (finding,) = found(notes=True, args=["--port=8080"])
    assert (finding.code, finding.severity) == ("TokenSpeedServedName", Severity.NOTE)
    (finding,) = found(notes=True, pod={"terminationGracePeriodSeconds": 30})
    assert finding == Finding(
        "TokenSpeedDrain",
        Severity.NOTE,
        "gateway and engine may take 30 s each for their requests, and the pod has 30 s to stop",
        "",
        "set the pod's terminationGracePeriodSeconds above 60",
        "llm-d/llm-d#1525",
    )


MESSAGES: list[tuple[dict[str, Any], str, str]] = [
    (
        {"more": ["--max-modle-len=1"]},
        "TokenSpeed 0.1.1 has no flag --max-modle-len, and the gateway stops at it only after the model "
        "has been loaded",
        "remove it",
    ),
    (
        {"more": WORKER},
        "a server of another node than the first serves nothing, and the probe asks it",
        "remove the probe, or ask with a command",
    ),
    (
        {"more": ["--nnodes=2"]},
        "TokenSpeed needs --dist-init-addr with several nodes, and stops",
        "add --dist-init-addr=HOST:PORT",
    ),
    (
        {"accelerators": 2},
        "the flags need 4 accelerators (tensor 4 x pipeline 1 x data 1), the container has 2",
        "ask for as many accelerators as the flags need, or lower the sizes",
    ),
    (
        {"more": ["--tp-size=1"]},
        "--tp-size is refused by TokenSpeed's parser: it has no such flag",
        "write --tensor-parallel-size",
    ),
]


@pytest.mark.parametrize("overrides, message, fix", MESSAGES)
def test_messages(found: Found, overrides: dict[str, Any], message: str, fix: str) -> None:
    (finding,) = found(**overrides)
    assert (finding.message, finding.fix) == (message, fix)


def test_empty_container_raises_nothing(view: Callable[..., PodView]) -> None:
    given = view(command=[], args=[])
    bare = PodView("engine", {"image": given.container["image"]}, {}, 0, given.detection)
    assert find(bare) == []


def test_every_rule_is_listed_once() -> None:
    assert len(RULES) == len(set(RULES)) == 17


def test_codes_are_documented() -> None:
    package = Path(ome_engine_tokenspeed.__file__).parent
    sources = "".join(path.read_text("utf-8") for path in package.glob("*.py"))
    readme = (Path(__file__).parents[1] / "README.md").read_text("utf-8")
    codes = set(re.findall(r'"(TokenSpeed[A-Z]\w+)"', sources))
    assert set(re.findall(r"`(TokenSpeed[A-Z]\w+)`", readme)) == codes
    assert len(codes) == 17


GEOMETRIES: list[tuple[str, dict[str, Any], Geometry | None]] = [
    ("tensor", {}, Geometry(4, 4)),
    ("attention's tensor", {"args": ["--attn-tp-size=2"]}, Geometry(2, 2)),
    ("stages", {"more": ["--pipeline-parallel-size=2"]}, Geometry(8, 4, pipeline=2)),
    ("replicas", {"more": ["--data-parallel-size=2"]}, Geometry(None, 4)),
    ("all in all", {"more": ["--world-size=8"]}, Geometry(None, 4)),
    (
        "memory, weights and cache",
        {"more": ["--gpu-memory-utilization=0.8", "--quantization=nvfp4", "--kv-cache-dtype=fp8"]},
        Geometry(4, 4, 1, 0.8, "nvfp4", 1),
    ),
    ("junk", {"args": ["--tp=-1", "--gpu-memory-utilization=2"]}, Geometry(None, None)),
    ("an odd cache", {"more": ["--kv-cache-dtype=mxfp8"]}, Geometry(4, 4, kv_bytes=None)),
    ("a script", {"command": ["sh", "-c", "a; ts serve m"], "args": []}, None),
]


@pytest.mark.parametrize(
    "overrides, expected", [case[1:] for case in GEOMETRIES], ids=[c[0] for c in GEOMETRIES]
)
def test_geometry(
    view: Callable[..., PodView], overrides: dict[str, Any], expected: Geometry | None
) -> None:
    assert geometry_of(view(**overrides)) == expected
