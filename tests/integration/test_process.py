"""`ome controller` as a process: its endpoints, its Lease, its end, and a second one beside it."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from objects import apply, deployment, image, ready, runtime, service
from processes import process

from conftest import install_crds, until
from controlplane import ControlPlane, Kubectl

LEASE = ("get", "lease", "ome-controller-manager-leader-lock", "-n", "lease-test")
QUICK = (
    "--leader-elect-lease-duration=3s",
    "--leader-elect-renew-deadline=2s",
    "--leader-elect-retry-period=500ms",
)


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """A control plane where no other controller works."""
    with ControlPlane.start() as found:
        install_crds(found.kubectl)
        found.kubectl("create", "namespace", "lease-test")
        found.kubectl("create", "namespace", "demo")
        yield found


def _holder(kubectl: Kubectl) -> str:
    done = kubectl.run(*LEASE, "-o", "jsonpath={.spec.holderIdentity}")
    return done.stdout


def test_two_processes_one_leads(plane: ControlPlane) -> None:
    kubectl = plane.kubectl
    elect = ("--leader-elect", "--leader-election-namespace=lease-test", *QUICK)
    apply(kubectl, "demo", runtime("r"), service("chat", "r"))
    with process(plane.kubeconfig, *elect) as first:
        until(lambda: first.said("working"))
        ready(kubectl, "demo", "chat")
        holder = _holder(kubectl)
        with process(plane.kubeconfig, *elect) as second:
            until(lambda: second.get("/readyz") == (200, "ok"))
            assert second.get("/healthz") == (200, "ok")
            assert not second.said("leading")
            assert "ome_leader 1.0" in first.get("/metrics")[1]
            assert "ome_leader 0.0" in second.get("/metrics")[1]
            # A leader that dies without a word is followed when its Lease has run out.
            first.end(signal.SIGKILL)
            until(lambda: second.said("working"))
            assert _holder(kubectl) not in ("", holder)
            apply(kubectl, "demo", service("chat", "r", runner={"image": "engine:v2"}))
            until(lambda: image(kubectl, "demo", "chat-engine") == "engine:v2")
            # One that is asked to end gives its Lease up, and exits well.
            assert second.end() == 0
            assert _holder(kubectl) == ""


def test_a_restart_writes_nothing(plane: ControlPlane) -> None:
    """Neither do a hundred resyncs."""
    kubectl = plane.kubectl
    both = service("pair", "pair")
    both["spec"]["router"] = {}
    made = runtime("pair")
    made["spec"]["routerConfig"] = {"runner": {"name": "router", "image": "router:v1"}}
    pinned = service("pinned", "pair")
    pinned["spec"]["runtime"]["autoSync"] = False
    refused = service("refused", "missing")
    apply(kubectl, "demo", made, both, pinned, refused)
    kubectl("create", "namespace", "ome")
    with process(plane.kubeconfig) as first:
        ready(kubectl, "demo", "pair", "pinned")
        until(lambda: bool(first.get("/metrics")[1]))
        at = deployment(kubectl, "demo", "pair-engine")["metadata"]["resourceVersion"]
        assert first.end() == 0
    with process(plane.kubeconfig, "--sync-period=50ms") as second:

        def resyncs() -> float:
            lines = second.get("/metrics")[1].splitlines()
            (found,) = [each for each in lines if each.startswith("ome_resyncs_total ")]
            return float(found.rpartition(" ")[2])

        until(lambda: resyncs() >= 100)
        assert second.writes() == {}
        lists = [
            line
            for line in second.get("/metrics")[1].splitlines()
            if line.startswith("ome_watch_lists_total")
        ]
        assert {line.rpartition(" ")[2] for line in lists} == {"1.0"}
        assert second.end(signal.SIGINT) == 0
    now = deployment(kubectl, "demo", "pair-engine")["metadata"]["resourceVersion"]
    assert now == at


def test_no_api_server(tmp_path: Path, plane: ControlPlane) -> None:
    """A process that can't reach its API server waits for it, says so, and ends when asked to."""
    text = plane.kubeconfig.read_text().replace(plane.server, "https://127.0.0.1:1")
    (tmp_path / "config").write_text(text)
    with process(tmp_path / "config") as lonely:
        until(lambda: lonely.get("/readyz")[0] == 503)
        until(lambda: "Cannot connect" in lonely.get("/readyz")[1])
        assert lonely.get("/healthz") == (200, "ok")
        assert lonely.end() == 0


def test_an_address_that_is_taken(plane: ControlPlane) -> None:
    with process(plane.kubeconfig) as first:
        until(lambda: first.said("starting"))
        taken = first.log()[0]["endpoints"][0].rpartition(":")[2]
        done = subprocess.run(
            [
                sys.executable,
                "-c",
                "from ome.cli.main import run; run()",
                "controller",
                f"--kubeconfig={plane.kubeconfig}",
                f"--health-probe-addr=127.0.0.1:{taken}",
            ],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 1
        told = f"--health-probe-addr: can't listen on 127.0.0.1:{taken}: Address already in use"
        assert done.stderr.splitlines()[-1] == f"error: {told}"
