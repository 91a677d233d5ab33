"""Every rule: the bad pod that it finds, and the good one that it leaves alone."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ome_engine_tokenspeed
from ome.engines import Finding, PodView, Severity
from ome_engine_tokenspeed.findings import RULES, find

Found = Callable[..., list[Finding]]
METRICS = {"httpGet": {"path": "/metrics", "port": 29000}}
WORKER = ["--nnodes=2", "--node-rank=1", "--dist-init-addr=a:1"]

HEALTH = {"httpGet": {"path": "/health?deep=1", "port": 8080}}
GRPC = {"grpc": {"port": 8080}}
MODULE = ["python3", "-m", "smg_grpc_servicer.tokenspeed"]
ALONE = ["--port=8080", "--tp=4", "--served-model-name=m", "--model=m"]
K3: dict[str, Any] = {"command": ["ts", "serve", "moonshotai/Kimi-K3"], "accelerators": 8}
K3_ARGS = ["--tp=8", "--port=8080", "--served-model-name=m"]

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
    (
        "no memory for attention",
        {"args": ["--attn-tp-size=4", "--port=8080"], "volumeMounts": None},
        [("TokenSpeedNoSharedMemory", "volumeMounts")],
    ),
    (
        "taken by serve",
        {"more": ["--no-tokenizer-cache-enable-l0", "--headless"], "readinessProbe": None},
        [],
    ),
    ("too few", {"accelerators": 2}, [("TokenSpeedTooFewAccelerators", "args[1]")]),
    (
        "data on top",
        {"more": ["--data-parallel-size=2", "--dist-init-addr=a:1"]},
        [("TokenSpeedTooFewAccelerators", "args[1]")],
    ),
    (
        "the world, which leaves two replicas",
        {"more": ["--world-size=8"]},
        [("TokenSpeedTooFewAccelerators", "args[3]"), ("TokenSpeedNoAddress", "args[3]")],
    ),
    ("the world alone", {"args": ["--served-model-name=m", "--port=8080", "--world-size=4"]}, []),
    (
        "the world on two nodes",
        {"more": ["--world-size=8", "--nnodes=2", "--dist-init-addr=a:1"]},
        [],
    ),
    ("a stub's answer", {"more": WORKER, "readinessProbe": HEALTH}, []),
    ("a stub's port", {"more": WORKER, "readinessProbe": {"tcpSocket": {"port": 8080}}}, []),
    (
        "a stub that is asked by gRPC",
        {"more": WORKER, "readinessProbe": GRPC},
        [("TokenSpeedWorkerProbe", "readinessProbe.grpc")],
    ),
    (
        "a rank by reference",
        {"more": ["--nnodes=2", "--node-rank=$(RANK)", "--dist-init-addr=a:1"]},
        [],
    ),
    (
        "headless",
        {"more": ["--headless"], "readinessProbe": GRPC},
        [("TokenSpeedWorkerProbe", "readinessProbe.grpc")],
    ),
    ("headless without probes", {"more": ["--headless"], "readinessProbe": None}, []),
    ("headless on another port", {"args": ["--headless"], "readinessProbe": None}, []),
    (
        "a gRPC server that is asked by HTTP",
        {"command": MODULE, "args": [*ALONE, "--host=0.0.0.0"]},
        [("TokenSpeedWorkerProbe", "readinessProbe.httpGet")],
    ),
    (
        "a gRPC server",
        {
            "command": MODULE,
            "args": [*ALONE, "--host=0.0.0.0", "--enable-metrics"],
            "readinessProbe": GRPC,
            "pod": {"terminationGracePeriodSeconds": 10},
        },
        [],
    ),
    (
        "a gRPC server without a host",
        {"command": MODULE, "args": ALONE, "readinessProbe": GRPC},
        [("TokenSpeedLoopback", "args")],
    ),
    ("a word too many", {"more": ["n"]}, [("TokenSpeedStrayWord", "args")]),
    ("a switch's value", {"more": ["--enforce-eager", "true"]}, [("TokenSpeedStrayWord", "args")]),
    (
        "the model last",
        {"command": ["ts", "serve"], "more": ["--trust-remote-code", "m"]},
        [("TokenSpeedStrayWord", "args")],
    ),
    (
        "the model last, on another node",
        {"command": ["ts", "serve"], "more": [*WORKER, "m"], "readinessProbe": HEALTH},
        [("TokenSpeedStrayWord", "args")],
    ),
    (
        "the model last, headless",
        {"command": ["ts", "serve"], "more": ["--headless", "m"], "readinessProbe": None},
        [],
    ),
    ("a word by reference", {"more": ["--trust-remote-code", "$(MORE)"]}, []),
    ("the model twice", {"more": ["--model-path=n"]}, [("TokenSpeedStrayWord", "args[3]")]),
    ("the model by a flag", {"command": ["ts", "serve"], "more": ["--model=m"]}, []),
    (
        "an engine alone takes it anywhere",
        {"command": MODULE, "args": [*ALONE[:-1], "--host=::", "m"], "readinessProbe": GRPC},
        [],
    ),
    ("Kimi-K3", {**K3, "args": K3_ARGS}, [("TokenSpeedEncoder", "args[0]")]),
    (
        "Kimi-K3 by a variable",
        {
            "args": K3_ARGS,
            "accelerators": 8,
            "env": [{"name": "MODEL_PATH", "value": "/mnt/Kimi_K3"}],
        },
        [("TokenSpeedEncoder", "args[0]")],
    ),
    ("Kimi-K3 as documented", {**K3, "args": [*K3_ARGS, "--mm-encoder-tp-mode=data"]}, []),
    ("Kimi-K3 on four", {**K3, "args": ["--tp=4", *K3_ARGS[1:]]}, []),
    ("Kimi-K3 without its encoder", {**K3, "args": [*K3_ARGS, "--language-model-only"]}, []),
    ("another model on eight", {"args": K3_ARGS, "accelerators": 8}, []),
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


LATE = ", and the gateway stops at it only after the model has been loaded"

MESSAGES: list[tuple[dict[str, Any], str, str]] = [
    (
        {"more": ["--max-modle-len=1"]},
        f"TokenSpeed 0.1.1 has no flag --max-modle-len{LATE}",
        "remove it",
    ),
    (
        {"command": MODULE, "args": [*ALONE, "--host=::", "--max-x=1"], "readinessProbe": GRPC},
        "TokenSpeed 0.1.1 has no flag --max-x",
        "remove it",
    ),
    (
        {"more": ["-tp", "1"]},
        "-tp is refused by TokenSpeed's parser: a long flag takes two dashes",
        "write --tp",
    ),
    (
        {"more": WORKER},
        "a server of another node than the first answers nothing but /health",
        "remove the probe, or ask for /health",
    ),
    (
        {"more": ["--headless"]},
        "with --headless TokenSpeed listens on no port, and the probe asks one",
        "remove the probe, or ask with a command",
    ),
    (
        {"command": MODULE, "args": [*ALONE, "--host=::"]},
        "a server without a gateway speaks gRPC alone, and the probe asks by HTTP",
        "write a grpc probe",
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
        f"--tp-size is refused by TokenSpeed's parser: it has no such flag{LATE}",
        "write --tensor-parallel-size",
    ),
    (
        {"more": ["n"]},
        'TokenSpeed takes a plain word only as the model, right after serve, and stops at "n"',
        "write it as the value of a flag, or remove it",
    ),
    (
        {"more": ["--model=n"]},
        "the model is given as a plain word and by --model, and TokenSpeed stops",
        "keep one of them",
    ),
    (
        {**K3, "args": K3_ARGS},
        "the 12 attention heads of Kimi-K3's vision encoder can't be shared by 8 accelerators",
        "add --mm-encoder-tp-mode=data",
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
    assert len(RULES) == len(set(RULES)) == 19


def test_codes_are_documented() -> None:
    package = Path(ome_engine_tokenspeed.__file__).parent
    sources = "".join(path.read_text("utf-8") for path in package.glob("*.py"))
    readme = (Path(__file__).parents[1] / "README.md").read_text("utf-8")
    codes = set(re.findall(r'"(TokenSpeed[A-Z]\w+)"', sources))
    assert set(re.findall(r"`(TokenSpeed[A-Z]\w+)`", readme)) == codes
    assert len(codes) == 19
