"""Child processes that end when their parent does."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from controlplane.errors import ControlPlaneError, PortLostError

__all__ = ["Processes", "tail"]

_PR_SET_PDEATHSIG = 1
_IN_USE = "address already in use"


class Processes:
    """The components of one control plane. Use it from one thread, the main one: that a child ends with
    its parent is a promise of the kernel about the parent's *thread*."""

    def __init__(self, log: Callable[[str], Path]) -> None:
        self._log = log
        self._started: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, program: Path, args: Sequence[str]) -> None:
        """Start a component, with its output in its log."""
        with self._log(name).open("wb") as log:
            self._started[name] = subprocess.Popen(
                [str(program), *args],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._log(name).parent,
                preexec_fn=_dies_with(os.getpid()),
            )

    def ids(self) -> dict[str, int]:
        """The process IDs by component."""
        return {name: process.pid for name, process in self._started.items()}

    def check(self) -> None:
        """Raise if a component has ended: `PortLostError` for a port that was taken."""
        for name, process in self._started.items():
            code = process.poll()
            if code is None:
                continue
            log = self._log(name)
            message = f"{name} ended with {code}; the end of its log:\n{tail(log)}"
            if _IN_USE in log.read_text(errors="replace"):
                raise PortLostError(message)
            raise ControlPlaneError(message)

    def stop(self) -> None:
        """End all components, those that were started last first. There is nothing that they could save."""
        for process in reversed(self._started.values()):
            process.kill()
            process.wait()
        self._started.clear()


def tail(path: Path, lines: int = 15) -> str:
    """The last lines of a file; empty if there is none."""
    if not path.exists():
        return ""
    return "\n".join(path.read_text(errors="replace").splitlines()[-lines:])


def _dies_with(parent: int) -> Callable[[], None] | None:
    """What the child does before it becomes the program: ask the kernel to be killed with its parent."""
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def ask() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it has gone in the meantime
            os._exit(1)

    return ask
