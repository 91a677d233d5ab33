"""Start, use and stop control planes from Python."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from controlplane.binaries import required
from controlplane.build import available
from controlplane.components import MANIFESTS
from controlplane.errors import ControlPlaneError
from controlplane.instance import TEST_PREFIX, Instance, sweep
from controlplane.kubectl import Kubectl
from controlplane.pki import Authority, Pair
from controlplane.processes import tail

__all__ = ["NODES", "ControlPlane", "down", "up"]

NODES = MANIFESTS / "nodes.yaml"
_PAUSE = 0.1
_PATIENCE = 30.0


@dataclass(frozen=True)
class ControlPlane:
    """A control plane that is ready. As a context manager it stops at the end."""

    instance: Instance
    supervisor: subprocess.Popen[bytes] | None = None

    @classmethod
    def start(cls, nodes: Path = NODES) -> ControlPlane:
        """Start one that ends with this process at the latest."""
        sweep(os.environ)
        name = f"{TEST_PREFIX}{os.getpid()}-{secrets.token_hex(4)}"
        instance = Instance.named(name, os.environ)
        return cls(instance, _launch(instance, nodes, os.getpid()))

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of a user who may do everything."""
        return self.instance.kubeconfig()

    @property
    def kubectl(self) -> Kubectl:
        """kubectl as that user."""
        return Kubectl(self.kubeconfig)

    @property
    def server(self) -> str:
        """The address of the API server."""
        return str(self.instance.state()["server"])

    @property
    def authority(self) -> Path:
        """The certificate of the authority that clients trust: a webhook's `caBundle`."""
        return self.instance.pki / "ca.crt"

    def as_user(self, user: str, groups: Sequence[str] = ()) -> Kubectl:
        """kubectl as any user in any groups, who may do what RBAC grants them."""
        return Kubectl(self.instance.user_kubeconfig(user, groups))

    def serving_pair(self) -> Pair:
        """A certificate for a server on `localhost` and 127.0.0.1, such as an admission webhook."""
        return Authority.read(self.instance.pki).server()

    def log(self, component: str) -> str:
        """What a component has logged, such as `kube-scheduler`."""
        return self.instance.log(component).read_text(errors="replace")

    def stop(self) -> None:
        """End all of its processes and remove its folder."""
        if self.supervisor is not None:
            self.supervisor.terminate()
            self.supervisor.wait()
        _remove(self.instance)

    def __enter__(self) -> ControlPlane:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self.stop()


def up(name: str, nodes: Path = NODES) -> ControlPlane:
    """Start one that stays until `down`; the one that is there if it runs already."""
    instance = Instance.named(name, os.environ)
    if instance.running():
        if instance.state().get("phase") != "ready":
            raise ControlPlaneError(f"the control plane {name} is starting; try again in a moment")
        return ControlPlane(instance)
    supervisor = _launch(instance, nodes, None)
    # It outlives this process; until then somebody has to wait for it, or it would stay as a zombie.
    threading.Thread(target=supervisor.wait, daemon=True).start()
    return ControlPlane(instance)


def down(name: str) -> bool:
    """Stop one and remove what it left; False if there was none."""
    instance = Instance.named(name, os.environ)
    if not instance.folder.exists():
        return False
    deadline = time.monotonic() + _PATIENCE
    while instance.running():
        pid = instance.state().get("pid")
        # The lock says that the supervisor lives, so the ID is its own.
        if isinstance(pid, int):
            os.kill(pid, signal.SIGTERM)
        if time.monotonic() > deadline:
            raise ControlPlaneError(f"the control plane {name} doesn't end (process {pid})")
        time.sleep(_PAUSE)
    _remove(instance)
    return True


def _remove(instance: Instance) -> None:
    file = instance.try_lock()
    if file is not None:
        instance.remove()
        os.close(file)


def _launch(instance: Instance, nodes: Path, parent: int | None) -> subprocess.Popen[bytes]:
    """Start a supervisor, give it the folder's lock, and wait until it says ready."""
    required(available(os.environ))
    if not nodes.is_file():
        raise ControlPlaneError(f"{nodes} is no file of nodes")
    command = [sys.executable, "-m", "controlplane.supervisor", f"--folder={instance.folder}"]
    command += [f"--nodes={nodes.absolute()}", *([f"--parent={parent}"] if parent else [])]
    with ExitStack() as stack:
        lock = instance.claim()
        stack.callback(os.close, lock)
        log = stack.enter_context(instance.log("supervisor").open("wb"))
        process = subprocess.Popen(
            command,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=instance.folder,
            pass_fds=[lock],
            start_new_session=True,
        )
    try:
        _wait_ready(instance, process)
    except BaseException:
        process.terminate()
        process.wait()
        raise
    return process


def _wait_ready(instance: Instance, process: subprocess.Popen[bytes]) -> None:
    while instance.state().get("phase") != "ready":
        if process.poll() is not None:
            reason = instance.state().get("message") or tail(instance.log("supervisor"))
            raise ControlPlaneError(f"the control plane {instance.name} didn't start: {reason}")
        time.sleep(_PAUSE)
