"""Control planes side by side, and what is left of one: nothing, however it ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from controlplane import ControlPlane, ControlPlaneError
from controlplane.__main__ import main
from controlplane.instance import Instance, sweep
from tests.integration.conftest import ROOT, until

COMPONENTS = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"]
PARENT = """
import json, time
from controlplane import ControlPlane
plane = ControlPlane.start()
print(json.dumps(plane.instance.state() | {"folder": str(plane.instance.folder)}), flush=True)
time.sleep(3600)
"""


def _gone(pid: int) -> bool:
    """Whether a process has ended; one that nobody waited for yet has."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return stat.rpartition(")")[2].split()[0] in ("Z", "X")


@pytest.fixture
def state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of control planes of this test's own."""
    monkeypatch.setenv("OME_CONTROLPLANE_STATE", str(tmp_path))
    return tmp_path


def test_two_side_by_side(control_plane: ControlPlane) -> None:
    with ControlPlane.start() as other:
        assert other.server != control_plane.server
        other.kubectl("create", "namespace", "only-here")
        assert control_plane.kubectl.refused("get", "namespace", "only-here") == (
            'Error from server (NotFound): namespaces "only-here" not found\n'
        )
        # Neither trusts the users of the other.
        mixed = f"--server={control_plane.server}"
        assert "certificate" in other.kubectl.refused("get", "namespaces", mixed)
        ids = list(other.instance.state()["processes"].values())
    assert all(_gone(pid) for pid in ids)
    assert not other.instance.folder.exists()
    assert control_plane.kubectl("get", "--raw=/readyz") == "ok"


def test_nothing_is_left_when_the_parent_is_killed(state_folder: Path) -> None:
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "tools")}
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdout=subprocess.PIPE, env=environ
    ) as parent:
        assert parent.stdout is not None
        state = json.loads(parent.stdout.readline())
        parent.kill()
    assert sorted(state["processes"]) == COMPONENTS
    until(lambda: all(_gone(pid) for pid in [state["pid"], *state["processes"].values()]))
    assert list(state_folder.iterdir()) == []


def test_no_process_is_left_when_the_supervisor_is_killed(
    state_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with ControlPlane.start() as plane:
        state = plane.instance.state()
        os.kill(state["pid"], signal.SIGKILL)
        until(lambda: all(_gone(pid) for pid in state["processes"].values()))
        assert plane.instance.folder.exists()
        assert not plane.instance.running()
        main(["status"])
        name = plane.instance.name
        told = f"{name}: left over (its supervisor was killed); `python -m controlplane down {name}` removes it"
        assert capsys.readouterr().out.splitlines()[-1] == told
        sweep(os.environ)
        assert list(state_folder.iterdir()) == []


def test_up_stays_until_down(state_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def run(*args: str) -> list[str]:
        assert main(list(args)) == 0
        return capsys.readouterr().out.splitlines()

    first = run("up", "mine")
    instance = Instance(state_folder / "mine")
    state = instance.state()
    assert first == [
        f"The control plane mine is ready at {state['server']}.",
        f"export KUBECONFIG={instance.kubeconfig()}",
    ]
    assert run("up", "mine") == first
    lines = run("status")
    assert f"mine: ready, supervisor {state['pid']}, {state['server']}" in lines
    assert lines[-5:] == [f"  {name} {state['processes'][name]}" for name in COMPONENTS]
    (kubeconfig,) = run("kubeconfig", "mine", "--user", "bob", "--group", "dev")
    assert Path(kubeconfig).is_file()
    assert run("down", "mine") == ["The control plane mine is gone."]
    until(lambda: all(_gone(pid) for pid in [state["pid"], *state["processes"].values()]))
    assert list(state_folder.iterdir()) == []
    assert run("down", "mine") == ["There is no control plane mine."]


def test_a_component_that_ends_is_told(
    state_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The others are ended, and the folder is kept for its logs."""
    assert main(["up", "mine"]) == 0
    instance = Instance(state_folder / "mine")
    ids = instance.state()["processes"]
    os.kill(ids["kube-scheduler"], signal.SIGKILL)
    until(lambda: not instance.running())
    assert all(_gone(pid) for pid in ids.values())
    capsys.readouterr()
    main(["status"])
    assert "\nmine: left over (kube-scheduler ended with -9; " in capsys.readouterr().out
    assert instance.log("kube-scheduler").is_file()
    assert main(["down", "mine"]) == 0
    assert list(state_folder.iterdir()) == []


def test_nodes_of_ones_own(state_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ControlPlaneError) as caught:
        ControlPlane.start(tmp_path / "none.yaml")
    assert str(caught.value) == f"{tmp_path / 'none.yaml'} is no file of nodes"


def test_a_lost_port_is_tried_again(state_folder: Path) -> None:
    """The first ports are taken by the time they are bound: here, by this test."""
    environ = {"PYTHONPATH": str(ROOT / "tools")}
    program = """
import os, socket, sys
from pathlib import Path
from controlplane import components, supervisor
from controlplane.instance import Instance
taken = socket.socket()
taken.bind(("127.0.0.1", 0))
taken.listen()
free, given = components.free_ports, []
def ports():
    found = free()
    given.append(found)
    return components.Ports(found.etcd, found.peer, taken.getsockname()[1]) if len(given) == 1 else found
supervisor.free_ports = ports
instance = Instance(Path(sys.argv[1]))
lock = instance.claim()
watched = supervisor.Supervisor(instance, None, components.MANIFESTS / "nodes.yaml")
def ready():
    assert instance.state()["phase"] == "ready"
    raise supervisor._Stopped
pause = watched._pause
watched._pause = lambda: ready() if instance.state()["phase"] == "ready" else pause()
print(watched.run(), len(given))
"""
    folder = state_folder / "mine"
    done = subprocess.run(
        [sys.executable, "-c", program, str(folder)],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
    )
    assert done.stdout == "0 2\n", done.stderr
