"""The rules about a pod: which codes are raised for which pods, where, and with what fix."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ome_engine_vllm
from ome.engines import Finding, PodView, Severity
from ome_engine_vllm.findings import RULES, find

Found = Callable[..., list[Finding]]
SERVE = ["vllm", "serve"]
API = ["python3", "-m", "vllm.entrypoints.openai.api_server"]
GRPC = ["python3", "-m", "vllm.entrypoints.grpc_server"]
RAY = ["ray", "start", "--address=$(LEADER):6379", "--block"]
TP = ["--port=8080", "--tensor-parallel-size=4"]
NO_PROBES: dict[str, Any] = {"readinessProbe": None, "livenessProbe": None}


def http(port: Any, path: str = "/health") -> dict[str, Any]:
    return {"httpGet": {"path": path, "port": port}}


@pytest.mark.parametrize("version", ["0.33.0", "0.32.0", "0.20.1", "0.9.0.1", ""])
def test_well_behaved_pod_has_no_finding(found: Found, version: str) -> None:
    assert found(version=version) == []
    words = ["--port", "8080", "--model", "$(MODEL_PATH)", "-tp", "4", "-pp=2"]
    if version in ("0.20.1", "0.9.0.1"):
        assert found(version=version, command=API, args=words) == []


# name, overrides, codes with their paths
CASES: list[tuple[str, dict[str, Any], list[tuple[str, str]]]] = [
    (
        "opaque",
        {"command": ["sh", "-c", "set -e; vllm serve m -tp 4"], "args": []},
        [("VLLMOpaque", "command[2]")],
    ),
    ("flags in a file", {"more": ["--config=a.yaml"]}, [("VLLMOpaque", "command[2]")]),
    ("old module", {"version": "0.28.0", "command": API, "args": ["--model=m", *TP]}, []),
    (
        "deprecated module",
        {"command": API, "args": ["--model=m", *TP]},
        [("VLLMDeprecatedLaunch", "command")],
    ),
    (
        "deprecated module of gRPC",
        {"command": GRPC, "args": ["--model=m", *TP]},
        [("VLLMDeprecatedLaunch", "command")],
    ),
    ("image alone", {"command": [], "args": ["m", *TP]}, []),
    ("no model", {"command": SERVE, "args": TP}, [("VLLMModel", "args[0]")]),
    ("model by flag", {"command": SERVE, "args": ["--model=m", *TP]}, [("VLLMModel", "args[0]")]),
    ("two models", {"more": ["--model=m"]}, [("VLLMModel", "args[3]")]),
    (
        "model by position for the module",
        {"version": "0.20.1", "command": API, "args": ["m", *TP]},
        [("VLLMModel", "args[0]")],
    ),
    (
        "no model for the module",
        {"version": "0.20.1", "command": API, "args": TP},
        [("VLLMModel", "args[0]")],
    ),
    ("no shared memory", {"volumeMounts": None}, [("VLLMNoSharedMemory", "volumeMounts")]),
    ("no tensor parallelism", {"volumeMounts": None, "args": ["--port=8080"]}, []),
    ("too few", {"accelerators": 4}, [("VLLMTooFewAccelerators", "args[1]")]),
    ("two nodes", {"accelerators": 4, "more": ["--nnodes=2"]}, []),
    ("two nodes, short", {"accelerators": 4, "more": ["-n2"]}, []),
    ("Ray spreads", {"accelerators": 4, "more": ["--distributed-executor-backend=ray"]}, []),
    ("Ray spreads replicas", {"accelerators": 4, "more": ["-dpb", "ray"]}, []),
    (
        "executor of one host",
        {"accelerators": 8, "more": ["--distributed_executor_backend=mp"]},
        [],
    ),
    ("replicas", {"more": ["-dp", "2"]}, [("VLLMTooFewAccelerators", "args[1]")]),
    ("replicas elsewhere", {"more": ["-dp=2", "-dpl=1"]}, []),
    ("replicas elsewhere on nodes", {"more": ["-dp=4", "-dpl=2", "-n=2"]}, []),
    ("one replica of several", {"more": ["-dp=2", "-dpn=1"]}, []),
    ("replicas by a hybrid balancer", {"more": ["-dp=2", "--data-parallel-hybrid-lb"]}, []),
    ("replicas from a rank on", {"more": ["-dp=2", "-dpr=1", "--headless"], **NO_PROBES}, []),
    ("prefill context", {"more": ["-pcp=2"]}, [("VLLMTooFewAccelerators", "args[1]")]),
    ("decode context lies inside tensor", {"more": ["-dcp=2"]}, []),
    ("sizes by reference", {"args": ["--port=8080", "-tp=$(N)"]}, []),
    ("no accelerators counted", {"accelerators": 0}, []),
    ("service links", {"service": "vllm"}, [("VLLMPortVariable", "env")]),
    ("links turned off", {"service": "vllm", "pod": {"enableServiceLinks": False}}, []),
    ("own variable", {"service": "vllm", "env": [{"name": "VLLM_PORT", "value": "1"}]}, []),
    (
        "time that isn't used",
        {"pod": {"terminationGracePeriodSeconds": 120}},
        [("VLLMShutdown", "command[2]")],
    ),
    (
        "time that isn't used, before it could be",
        {"version": "0.16.0", "pod": {"terminationGracePeriodSeconds": 120}},
        [],
    ),
    (
        "time that is used",
        {"more": ["--shutdown-timeout=100"], "pod": {"terminationGracePeriodSeconds": 120}},
        [],
    ),
    ("too long to stop", {"more": ["--shutdown-timeout=30"]}, [("VLLMShutdown", "args[3]")]),
    (
        "too long after a sleep",
        {
            "more": ["--shutdown-timeout=20"],
            "lifecycle": {"preStop": {"sleep": {"seconds": 15}}},
        },
        [("VLLMShutdown", "args[3]")],
    ),
    ("time by reference", {"more": ["--shutdown-timeout=$(N)"]}, []),
    ("headless", {"more": ["--headless"], **NO_PROBES}, []),
    (
        "headless and probed",
        {"more": ["--headless"], "livenessProbe": None},
        [("VLLMWorkerProbe", "readinessProbe.httpGet")],
    ),
    (
        "headless and asked by a command",
        {"more": ["--headless"], **NO_PROBES, "livenessProbe": {"exec": {"command": ["true"]}}},
        [],
    ),
    ("Ray node", {"command": RAY, "args": [], **NO_PROBES}, []),
    (
        "Ray node with its own probe",
        {"command": RAY, "args": [], **NO_PROBES, "livenessProbe": http(8265, "/api/version")},
        [],
    ),
    (
        "Ray node that is probed",
        {"command": RAY, "args": [], "livenessProbe": None},
        [("VLLMWorkerProbe", "readinessProbe.httpGet.path")],
    ),
]


@pytest.mark.parametrize(
    "overrides, expected", [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
def test_findings(found: Found, overrides: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    assert [(one.code, one.path) for one in found(**overrides)] == expected


# name, probe, other overrides, whether the port is wrong
PORTS: list[tuple[str, dict[str, Any], dict[str, Any], bool]] = [
    ("right", http(8080), {}, False),
    ("wrong", http(8000), {}, True),
    ("default", http(8000), {"args": []}, False),
    ("not the default", http(8080), {"args": []}, True),
    ("image alone", http(8080), {"command": [], "args": ["m"]}, False),
    (
        "gRPC of the Rust frontend",
        {"grpc": {"port": 50051}},
        {"more": ["--grpc-port=50051"]},
        False,
    ),
    ("socket of a file", http(1), {"more": ["--uds=/tmp/s"]}, False),
    (
        "supervisor",
        http(9256),
        {"more": ["--data-parallel-multi-port-external-lb"]},
        False,
    ),
    (
        "replica behind the supervisor",
        http(8081),
        {"accelerators": 16, "more": ["-dpm", "-dp=2"]},
        False,
    ),
    ("no replica", http(8082), {"accelerators": 16, "more": ["-dpm", "-dp=2"]}, True),
]


@pytest.mark.parametrize(
    "probe, overrides, is_wrong", [case[1:] for case in PORTS], ids=[c[0] for c in PORTS]
)
def test_port(
    found: Found, probe: dict[str, Any], overrides: dict[str, Any], is_wrong: bool
) -> None:
    got = found(**{**NO_PROBES, "readinessProbe": probe, **overrides})
    assert [one.code for one in got] == (["VLLMProbePort"] if is_wrong else [])


# overrides, the message and the fix of the one finding
MESSAGES: list[tuple[dict[str, Any], str, str]] = [
    (
        {"command": API, "args": ["--model=m", *TP]},
        "python -m vllm.entrypoints.openai.api_server is deprecated in vLLM 0.33.0",
        "launch vllm serve MODEL",
    ),
    (
        {"command": GRPC, "args": ["--model=m", *TP]},
        "python -m vllm.entrypoints.grpc_server is deprecated in vLLM 0.33.0",
        "launch vllm serve MODEL --grpc",
    ),
    (
        {"command": SERVE, "args": ["--model=m", *TP]},
        "vllm serve is given --model, which vLLM will drop",
        "name the model after vllm serve, without --model",
    ),
    (
        {"version": "0.9.0.1", "command": SERVE, "args": ["--model=m", *TP]},
        "vLLM 0.9.0.1 stops when vllm serve is given --model",
        "name the model after vllm serve, without --model",
    ),
    (
        {"more": ["--model=m"]},
        "vllm serve is given two models, $(MODEL_PATH) and --model, so its parser stops",
        "name the model after vllm serve, without --model",
    ),
    (
        {"version": "0.20.1", "command": API, "args": ["m", *TP]},
        "vllm.entrypoints.openai.api_server doesn't read the model from m, so vLLM serves its own default",
        "name it with --model",
    ),
    (
        {"command": SERVE, "args": TP},
        "no model is named, so vLLM serves its own default",
        "name it after vllm serve",
    ),
    (
        {"accelerators": 4, "more": ["-dp=2"]},
        "the flags need 16 accelerators (tensor 4 x pipeline 2 x data 2), the container has 4",
        "ask for as many accelerators as the flags need, or lower the sizes",
    ),
    (
        {"more": ["-pcp=2"]},
        "the flags need 16 accelerators (tensor 4 x pipeline 2 x context 2 x data 1), the container has 8",
        "ask for as many accelerators as the flags need, or lower the sizes",
    ),
    (
        {"service": "vllm"},
        "the Service vllm sets VLLM_PORT in its namespace's pods, and vLLM stops at its value",
        "set enableServiceLinks to false, or rename the InferenceService",
    ),
    (
        {"pod": {"terminationGracePeriodSeconds": 120}},
        "the pod has 120 s to stop, and vLLM aborts its requests at once",
        "set --shutdown-timeout, below 120",
    ),
    (
        {"more": ["--shutdown-timeout=20"], "lifecycle": {"preStop": {"sleep": {"seconds": 15}}}},
        "vLLM may take 20 s for its requests, and the pod has 15 s to stop",
        "set the pod's terminationGracePeriodSeconds above 35",
    ),
    (
        {"more": ["--headless"], "livenessProbe": None},
        "the probe asks a server that is --headless: it answers nothing",
        "remove the probe, or ask with a command",
    ),
    (
        {"command": RAY, "args": [], "livenessProbe": None},
        "the probe asks a node of a Ray cluster for /health, which only the server answers",
        "remove the probe, or ask with a command such as ray status",
    ),
]


@pytest.mark.parametrize("overrides, message, fix", MESSAGES)
def test_messages(found: Found, overrides: dict[str, Any], message: str, fix: str) -> None:
    (finding,) = found(**overrides)
    assert (finding.message, finding.fix) == (message, fix)


def test_a_model_flag_that_is_fatal_is_an_error(found: Found) -> None:
    severities = {
        version: found(version=version, command=SERVE, args=["--model=m", *TP])[0].severity
        for version in ("0.8.5", "0.11.0", "0.12.0", "")
    }
    assert severities == {
        "0.8.5": Severity.ERROR,
        "0.11.0": Severity.ERROR,
        "0.12.0": Severity.WARNING,
        "": Severity.WARNING,
    }


def test_empty_container_raises_nothing(view: Callable[..., PodView]) -> None:
    given = view(command=[], args=[])
    bare = PodView("engine", {"image": given.container["image"]}, {}, 0, given.detection)
    assert find(bare) == []


def test_every_rule_is_listed_once() -> None:
    assert len(RULES) == len(set(RULES)) == 18


CODES = {
    "VLLMDeprecatedLaunch",
    "VLLMFlagAmbiguous",
    "VLLMFlagDeprecated",
    "VLLMFlagExclusive",
    "VLLMFlagPrefix",
    "VLLMFlagRemoved",
    "VLLMFlagRepeated",
    "VLLMFlagSpelling",
    "VLLMFlagUnknown",
    "VLLMModel",
    "VLLMNoSharedMemory",
    "VLLMOpaque",
    "VLLMPortVariable",
    "VLLMProbePort",
    "VLLMServedName",
    "VLLMVersionUnknown",
    "VLLMShutdown",
    "VLLMTooFewAccelerators",
    "VLLMWorkerProbe",
}


def test_codes_are_pinned_and_documented() -> None:
    package = Path(ome_engine_vllm.__file__).parent
    sources = "".join(path.read_text("utf-8") for path in package.glob("*.py"))
    readme = (Path(__file__).parents[1] / "README.md").read_text("utf-8")
    assert set(re.findall(r'"(VLLM[A-Z][a-z]\w+)"', sources)) == CODES
    assert set(re.findall(r"`(VLLM[A-Z][a-z]\w+)`", readme)) == CODES


def test_a_model_without_a_name_is_a_note(found: Found) -> None:
    (finding,) = found(notes=True, args=["--port=8080"])
    assert (finding.code, finding.severity) == ("VLLMServedName", Severity.NOTE)
    assert (
        finding.message
        == "vLLM serves the model under the path of its files, which clients have to give"
    )
    assert finding.fix == "add --served-model-name={{.Name}}"
    assert found(notes=True, args=["--port=8080", "--served-model-name", "m"]) == []
