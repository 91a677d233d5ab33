"""The process that starts a control plane, watches it and ends it.

It is started with `python -m controlplane.supervisor`, by `up` and by tests alike. It ends when it gets
SIGTERM, when a component ends, and, for tests, when the process that started it is gone. Should it be
killed itself, the kernel kills the components.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType

from controlplane.binaries import required
from controlplane.build import available
from controlplane.components import MANIFESTS, commands, free_ports, write_credentials
from controlplane.errors import ControlPlaneError, PortLostError
from controlplane.instance import Instance
from controlplane.kubectl import Kubectl
from controlplane.processes import Processes

__all__ = ["main"]

_TRIES = 5
_PATIENCE = 180.0
_PAUSE = 0.2


class _Stopped(BaseException):
    """Somebody asked for an end."""


class Supervisor:
    """One control plane from start to end. `parent` is the process to end with, or None."""

    def __init__(self, instance: Instance, parent: int | None, nodes: Path) -> None:
        self.instance = instance
        self.parent = parent
        self.nodes = nodes
        self.processes = Processes(instance.log)
        self.server = ""

    def run(self) -> int:
        """Supervise until the end; 1 if a component failed, whose folder is then kept."""
        try:
            self._write("starting")
            self._start(required(available(os.environ)))
            self._write("ready")
            while True:
                self._pause()
        except _Stopped:
            self.processes.stop()
            self.instance.remove()
            return 0
        except ControlPlaneError as error:
            self.processes.stop()
            self._write("failed", message=str(error))
            return 1
        finally:
            self.processes.stop()

    def _write(self, phase: str, **more: str) -> None:
        state = {"phase": phase, "server": self.server, "processes": self.processes.ids()}
        self.instance.write_state(pid=os.getpid(), parent=self.parent, **state, **more)

    def _pause(self) -> None:
        """Wait a moment and see whether all is as it should be."""
        time.sleep(_PAUSE)
        if self.parent is not None and os.getppid() != self.parent:
            raise _Stopped
        self.processes.check()

    def _start(self, programs: Mapping[str, Path]) -> None:
        for left in reversed(range(_TRIES)):
            try:
                return self._start_once(programs)
            except PortLostError:
                self.processes.stop()
                self.instance.empty()
                if not left:
                    raise
        return None

    def _start_once(self, programs: Mapping[str, Path]) -> None:
        ports = free_ports()
        self.server = ports.server
        write_credentials(self.instance, ports)
        arguments = commands(self.instance, ports)
        kubectl = Kubectl(self.instance.kubeconfig())

        def start(*names: str) -> None:
            for name in names:
                self.processes.start(name, programs[name], arguments[name])
            self._write("starting")

        start("etcd", "kube-apiserver")
        self._until("the API server is ready", lambda: _says(kubectl, "get", "--raw=/readyz"))
        start("kube-controller-manager", "kube-scheduler")
        kubectl("apply", "-f", str(MANIFESTS / "rbac.yaml"), "-f", str(self.nodes))
        start("kwok")
        account = ("get", "serviceaccount", "default", "-n", "default", "-o", "name")
        self._until("there are service accounts", lambda: _says(kubectl, *account))
        nodes = ("wait", "--for=condition=Ready", "node", "--all", "--timeout=15s")
        self._until("the nodes are ready", lambda: _says(kubectl, *nodes))
        self._until("nodes take pods", lambda: not _says(kubectl, *_TAINTS).count("not-ready"))

    def _until(self, what: str, holds: Callable[[], object]) -> None:
        deadline = time.monotonic() + _PATIENCE
        while not holds():
            self._pause()
            if time.monotonic() > deadline:
                folder = self.instance.folder
                raise ControlPlaneError(
                    f"waited {_PATIENCE:.0f} s until {what}; logs are in {folder}"
                )


_TAINTS = ("get", "nodes", "-o", "jsonpath={.items[*].spec.taints[*].key} .")


def _says(kubectl: Kubectl, *args: str) -> str:
    """What kubectl printed; nothing if it failed."""
    done = kubectl.run(*args)
    return "" if done.returncode else done.stdout


_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def _stop(signum: int, frame: FrameType | None) -> None:
    """Raise once; whoever asks again doesn't disturb the end."""
    for each in _SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    raise _Stopped


def main(argv: list[str]) -> int:
    """Supervise the control plane of a folder whose lock the caller has handed over."""
    parser = argparse.ArgumentParser(prog="controlplane.supervisor")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--nodes", type=Path, required=True)
    parser.add_argument("--parent", type=int)
    args = parser.parse_args(argv)
    for each in _SIGNALS:
        signal.signal(each, _stop)
    return Supervisor(Instance(args.folder), args.parent, args.nodes).run()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
