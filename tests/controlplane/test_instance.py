"""Folders of control planes, their locks, what they hold, and child processes; nothing is started for real."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from cryptography import x509

from controlplane.__main__ import main
from controlplane.binaries import PROGRAMS
from controlplane.components import (
    CLIENTS,
    MANIFESTS,
    Ports,
    commands,
    free_ports,
    write_credentials,
)
from controlplane.errors import ControlPlaneError, PortLostError
from controlplane.instance import Instance, base_folder, instances, sweep
from controlplane.kubectl import Kubectl
from controlplane.pki import Authority
from controlplane.processes import Processes

TOOLS = Path(__file__).parents[2] / "tools"


@pytest.fixture
def environ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """An environment whose control planes are this test's own."""
    monkeypatch.setenv("OME_CONTROLPLANE_STATE", str(tmp_path / "state"))
    return {"OME_CONTROLPLANE_STATE": str(tmp_path / "state")}


def test_a_claimed_folder_is_running_until_its_lock_goes(environ: dict[str, str]) -> None:
    instance = Instance.named("mine", environ)
    assert not instance.running()
    assert not instance.folder.exists()
    lock = instance.claim()
    assert instance.running()
    assert instance.folder.stat().st_mode & 0o077 == 0
    with pytest.raises(ControlPlaneError) as caught:
        instance.claim()
    assert str(caught.value) == "the control plane mine is running already"
    os.close(lock)
    assert not instance.running()


def test_what_is_left_over_is_emptied_by_the_next(environ: dict[str, str]) -> None:
    instance = Instance.named("mine", environ)
    os.close(instance.claim())
    instance.write_state(phase="ready")
    (instance.folder / "data").mkdir()
    os.close(instance.claim())
    assert [path.name for path in instance.folder.iterdir()] == ["lock"]


def test_sweep_removes_left_overs_of_tests_only(environ: dict[str, str]) -> None:
    held = Instance.named("test-1-a", environ).claim()
    os.close(Instance.named("test-2-b", environ).claim())
    os.close(Instance.named("mine", environ).claim())
    sweep(environ)
    assert [each.name for each in instances(environ)] == ["mine", "test-1-a"]
    os.close(held)


@pytest.mark.parametrize("name", ["", "../up", "UP", "-a", "a" * 41])
def test_names(name: str, environ: dict[str, str]) -> None:
    with pytest.raises(ControlPlaneError) as caught:
        Instance.named(name, environ)
    assert str(caught.value) == f"{name!r} can't name a control plane: use a-z, 0-9 and -, up to 40"


def test_a_state_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(ControlPlaneError) as caught:
        base_folder({"OME_CONTROLPLANE_STATE": str(tmp_path / "link")})
    assert str(caught.value).endswith(
        "belongs to another user; set OME_CONTROLPLANE_STATE to a folder of yours"
    )


def test_status_tells_left_overs_and_failures(
    environ: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    killed, failed = Instance.named("a", environ), Instance.named("b", environ)
    for instance in (killed, failed):
        os.close(instance.claim())
    killed.write_state(phase="ready", pid=os.getpid())
    failed.write_state(phase="failed", message="etcd ended with 1")
    assert main(["status"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "left over" in line]
    assert lines == [
        "a: left over (its supervisor was killed); `python -m controlplane down a` removes it",
        "b: left over (etcd ended with 1); `python -m controlplane down b` removes it",
    ]
    assert main(["down", "a"]) == main(["down", "b"]) == 0
    assert list(instances(environ)) == []


def test_a_kubeconfig_needs_a_control_plane(
    environ: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["kubeconfig", "--user", "alice"]) == 1
    told = "Error: there is no control plane default: run `python -m controlplane up`\n"
    assert capsys.readouterr().err == told


def test_credentials_are_private_and_name_users_and_groups(environ: dict[str, str]) -> None:
    instance = Instance.named("mine", environ)
    lock = instance.claim()
    ports = free_ports()
    write_credentials(instance, ports)
    instance.write_state(server=ports.server)
    found = {
        "alice": (["dev", "on-call"], instance.user_kubeconfig("alice", ["dev", "on-call"])),
        **{
            user: (list(groups), instance.kubeconfig(name))
            for name, (user, groups) in CLIENTS.items()
        },
    }
    for user, (groups, path) in found.items():
        config = yaml.safe_load(path.read_text())
        assert config["clusters"][0]["cluster"]["server"] == f"https://127.0.0.1:{ports.apiserver}"
        pem = base64.b64decode(config["users"][0]["user"]["client-certificate-data"])
        subject = x509.load_pem_x509_certificate(pem).subject
        assert [each.value for each in subject][-1] == user
        assert [each.value for each in subject][:-1] == groups
    secret = [path for path in instance.folder.rglob("*") if path.is_file() and path.name != "lock"]
    assert [path for path in secret if path.stat().st_mode & 0o077] == []
    os.close(lock)


def test_a_server_certificate_is_for_the_loopback_interface() -> None:
    pair = Authority.new().server("kubernetes")
    names = x509.load_pem_x509_certificate(pair.certificate).extensions.get_extension_for_class(
        x509.SubjectAlternativeName
    )
    assert names.value.get_values_for_type(x509.DNSName) == ["localhost", "kubernetes"]
    assert [str(each) for each in names.value.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]


def test_every_listener_is_on_the_loopback_interface(environ: dict[str, str]) -> None:
    args = commands(Instance.named("mine", environ), Ports(1, 2, 3))
    assert sorted(args) == sorted(program.name for program in PROGRAMS)
    listen = [
        arg for each in args.values() for arg in each if "listen-" in arg or "bind-address" in arg
    ]
    assert listen == [
        "--listen-client-urls=https://127.0.0.1:1",
        "--listen-peer-urls=https://127.0.0.1:2",
        "--bind-address=127.0.0.1",
    ]
    assert "--authorization-mode=Node,RBAC" in args["kube-apiserver"]
    for silent in ("kube-controller-manager", "kube-scheduler"):
        assert "--secure-port=0" in args[silent]


def test_stages_and_nodes() -> None:
    stages = list(yaml.safe_load_all((MANIFESTS / "kwok.yaml").read_text()))
    names = [stage["metadata"]["name"] for stage in stages]
    assert names == [
        "node-ready", "pod-delete", "pod-ready", "pod-complete",
        "pod-not-ready", "pod-crash-loop", "pod-image-pull", "pod-failed",
    ]  # fmt: skip
    readme = (MANIFESTS.parent / "README.md").read_text()
    assert [name for name in names[4:] if f"`{name.removeprefix('pod-')}`" not in readme] == []
    nodes = list(yaml.safe_load_all((MANIFESTS / "nodes.yaml").read_text()))
    assert [node["status"]["capacity"].get("nvidia.com/gpu") for node in nodes] == [None, "8", "8"]


def test_kubectl_says_what_failed(tmp_path: Path) -> None:
    (tmp_path / "broken").write_text("{")
    kubectl = Kubectl(tmp_path / "broken")
    with pytest.raises(ControlPlaneError) as caught:
        kubectl("get", "pods")
    assert str(caught.value).startswith("kubectl get pods ended with 1: error: ")
    with pytest.raises(AssertionError):
        kubectl.refused("version", "--client")


def _check_on(processes: Processes) -> None:
    while True:
        processes.check()


def test_a_component_that_ends_is_told_with_its_log(tmp_path: Path) -> None:
    processes = Processes(lambda name: tmp_path / f"{name}.log")
    shell = Path("/bin/sh")
    for said, kind in (
        ("no", ControlPlaneError),
        ("listen: address already in use", PortLostError),
    ):
        processes.start("etcd", shell, ["-c", f"echo {said}; exit 4"])
        with pytest.raises(ControlPlaneError) as caught:
            _check_on(processes)
        assert type(caught.value) is kind
        assert str(caught.value) == f"etcd ended with 4; the end of its log:\n{said}"
        processes.stop()


CHILD = """
import time
from pathlib import Path
from controlplane.processes import Processes
processes = Processes(lambda name: Path(name).absolute())
processes.start("log", Path("/bin/sleep"), ["3600"])
print(processes.ids()["log"], flush=True)
time.sleep(3600)
"""


def test_a_child_ends_with_its_parent(tmp_path: Path) -> None:
    command = [sys.executable, "-c", CHILD]
    environ = {**os.environ, "PYTHONPATH": str(TOOLS)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=tmp_path, env=environ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert Path(f"/proc/{child}/cmdline").read_bytes() == b"/bin/sleep\x003600\x00"
        parent.kill()
    # A killed process may stay as a zombie, without a command line, until somebody waits for it.
    cmdline = Path(f"/proc/{child}/cmdline")
    for _ in range(600):
        if not cmdline.exists() or not cmdline.read_bytes():
            break
        time.sleep(0.1)
    else:
        raise AssertionError(f"process {child} lives")
