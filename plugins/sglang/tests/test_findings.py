"""The rules about a pod: which codes are raised for which pods, where, and with what fix."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ome_engine_sglang
from ome.engines import Finding, PodView, Severity
from ome_engine_sglang.findings import RULES, find

Found = Callable[..., list[Finding]]
SEED = [
    "--host=0.0.0.0",
    "--port=8080",
    "--model-path=$(MODEL_PATH)",
    "--tp-size=4",
    "--pp-size=2",
    "--mem-frac=0.85",
]


@pytest.mark.parametrize("image", ["lmsysorg/sglang:v0.5.5.post3-cu129-amd64", "lmsysorg/sglang"])
def test_well_behaved_form_has_no_finding(found: Found, image: str) -> None:
    assert found(args=SEED, image=image) == []


@pytest.mark.parametrize("image", ["lmsysorg/sglang:v0.5.23", "lmsysorg/sglang:latest"])
def test_well_behaved_command_has_no_finding(found: Found, image: str) -> None:
    words = [part for flag in SEED for part in flag.split("=", 1)]
    command = ["python3", "-m", "sglang.launch_server", *words]
    assert found(command=command, args=[], image=image) == []


NOT_READ = ["sh", "-c", "set -e; exec python3 -m sglang.launch_server --tp-size=4"]

# name, overrides, codes with their paths
CASES: list[tuple[str, dict[str, Any], list[tuple[str, str]]]] = [
    ("no host", {"args": ["--port=8080"]}, [("SGLangLoopback", "args")]),
    (
        "no host, all in command",
        {"args": [], "command": ["sglang", "serve", "m", "--port", "8080"]},
        [("SGLangLoopback", "command")],
    ),
    ("loopback", {"more": ["--host=127.0.0.1"]}, [("SGLangLoopback", "args[6]")]),
    (
        "localhost",
        {"args": ["--port=8080", "--host", "localhost"]},
        [("SGLangLoopback", "args[1]")],
    ),
    ("IPv6 loopback", {"args": ["--port=8080", "--host=::1"]}, [("SGLangLoopback", "args[1]")]),
    ("host by reference", {"args": ["--port=8080", "--host=$(POD_IP)"]}, []),
    ("all of IPv6", {"args": ["--port=8080", "--host=::"]}, []),
    ("router", {"args": ["--port=8080"], "component": "router"}, []),
    ("host in a file", {"args": ["--port=8080", "--config=a.yaml"]}, [("SGLangOpaque", "args[0]")]),
    ("image alone", {"command": [], "args": ["--port=8080"]}, []),
    (
        "follower without probes",
        {
            "args": ["--port=8080", "--nnodes=2", "--node-rank=$(LWS_WORKER_INDEX)"],
            "readinessProbe": None,
            "livenessProbe": None,
            "startupProbe": None,
        },
        [],
    ),
    ("opaque", {"command": NOT_READ, "args": []}, [("SGLangOpaque", "command[2]")]),
    (
        "one-liner",
        {"command": ["sh", "-c", "exec sglang serve --port 8080"], "args": []},
        [("SGLangLoopback", "command")],
    ),
    ("no shared memory", {"volumeMounts": None}, [("SGLangNoSharedMemory", "volumeMounts")]),
    (
        "shared memory on disk",
        {"pod": {"volumes": [{"name": "dshm", "emptyDir": {}}]}},
        [("SGLangNoSharedMemory", "volumeMounts")],
    ),
    (
        "shared memory of the host",
        {"pod": {"volumes": [{"name": "dshm", "hostPath": {"path": "/dev/shm"}}]}},
        [],
    ),
    ("host IPC", {"volumeMounts": None, "pod": {"hostIPC": True}}, []),
    ("no tensor parallelism", {"volumeMounts": None, "args": [*SEED[:3], "--tp-size=1"]}, []),
    ("tensor by reference", {"volumeMounts": None, "args": [*SEED[:3], "--tp-size=$(N)"]}, []),
    ("too few", {"accelerators": 4}, [("SGLangTooFewAccelerators", "args[3]")]),
    ("data on top", {"more": ["--dp-size=2"]}, [("SGLangTooFewAccelerators", "args[3]")]),
    ("data within tensor", {"more": ["--dp-size=2", "--enable-dp-attention"]}, []),
    ("attention data", {"more": ["--attn-dp-size=2"]}, []),
    ("two nodes", {"more": ["--nnodes=2"], "accelerators": 4}, []),
    ("nodes by reference", {"more": ["--nnodes=$(N)"], "accelerators": 4}, []),
    ("sizes by reference", {"args": [*SEED[:3], "--tp-size=$(PARALLELISM_SIZE)"]}, []),
    ("no accelerators counted", {"accelerators": 0}, []),
    ("Ray spreads", {"more": ["--use-ray"], "accelerators": 4}, []),
    (
        "diffusion has its own flags",
        {
            "image": "sglang:0.5.6-diffusion-cuda129-amd64",
            "command": ["sglang", "serve", "--port", "8080", "--num_gpus", "8"],
            "args": [],
        },
        [],
    ),
]


@pytest.mark.parametrize(
    "overrides, expected", [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
def test_findings(found: Found, overrides: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    rules = {"SGLangFlagRepeated"}  # has a table of its own
    got = [(one.code, one.path) for one in found(**overrides) if one.code not in rules]
    assert got == expected


def test_messages(found: Found) -> None:
    (finding,) = found(accelerators=2, more=["--nnodes=2"])
    assert finding == Finding(
        "SGLangTooFewAccelerators",
        Severity.ERROR,
        "the flags need 8 accelerators (tensor 4 x pipeline 2 x data 1), "
        "the container has 2 on each of 2 nodes",
        "args[3]",
        "ask for as many accelerators as the flags need, or lower the sizes",
        "sgl-project/sglang#3470",
    )
    (finding,) = found(command=NOT_READ, args=[])
    assert finding.message == (
        "the flags of SGLang aren't checked, because it is launched by a shell script of several "
        "commands"
    )


def test_empty_container_raises_nothing(view: Callable[..., PodView]) -> None:
    given = view(command=[], args=[])
    bare = PodView("engine", {"image": given.container["image"]}, {}, 0, given.detection)
    assert find(bare) == []


def test_every_rule_is_listed_once() -> None:
    assert len(RULES) == len(set(RULES)) == 15


CODES = {
    "SGLangFlagAmbiguous",
    "SGLangFlagPrefix",
    "SGLangFlagRemoved",
    "SGLangFlagRepeated",
    "SGLangFlagSpelling",
    "SGLangFlagUnknown",
    "SGLangGrace",
    "SGLangLoopback",
    "SGLangServedName",
    "SGLangVersionUnknown",
    "SGLangWorkerProbe",
    "SGLangNoSharedMemory",
    "SGLangOpaque",
    "SGLangProbePort",
    "SGLangProbeTimeout",
    "SGLangTooFewAccelerators",
}


def test_codes_are_pinned_and_documented() -> None:
    package = Path(ome_engine_sglang.__file__).parent
    sources = "".join(path.read_text("utf-8") for path in package.glob("*.py"))
    readme = (Path(__file__).parents[1] / "README.md").read_text("utf-8")
    assert set(re.findall(r'"(SGLang[A-Z]\w+)"', sources)) == CODES
    assert set(re.findall(r"`(SGLang[A-Z]\w+)`", readme)) == CODES


def test_a_model_without_a_name_is_a_note(found: Found) -> None:
    (finding,) = found(notes=True, args=["--host=0.0.0.0", "--port=8080"])
    assert (finding.code, finding.severity) == ("SGLangServedName", Severity.NOTE)
    assert finding.fix == "add --served-model-name={{.Name}}"
    assert found(notes=True) == []
    assert found(notes=True, args=["--host=0.0.0.0", "--port=8080"], component="router") == []


def test_a_pod_that_is_killed_early_is_a_note(found: Found) -> None:
    (finding,) = found(notes=True, pod={"terminationGracePeriodSeconds": 30})
    assert (finding.code, finding.severity) == ("SGLangGrace", Severity.NOTE)
    assert finding.message == (
        "SGLang finishes its requests before it stops, however long they take; this pod is killed "
        "after 30 s"
    )
    assert found(notes=True, pod={"terminationGracePeriodSeconds": 31}) == []


WORKER = ["--nnodes=2", "--node-rank=1", "--dist-init-addr=x:1"]


def test_a_worker_has_a_stub_for_probes_only(found: Found) -> None:
    findings = found(more=WORKER, readinessProbe=None, startupProbe=None)
    assert findings == []
    (first, second) = found(more=WORKER)
    assert (first.code, first.path) == ("SGLangWorkerProbe", "startupProbe.httpGet.path")
    assert (
        first.message
        == "a server of rank 1 answers /health alone, and the probe asks /health_generate"
    )
    assert second.path == "readinessProbe.httpGet.path"
