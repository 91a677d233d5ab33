"""What tests with a control plane share: OME's CRDs in it, and ways to wait."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from running import Running, running

from controlplane import ControlPlane, Kubectl

ROOT = Path(__file__).parents[2]
# Far more than anything takes; reaching it is a failure.
PATIENCE = 60.0


def ome(*args: str) -> str:
    """What `ome` prints; it may refuse some services (exit code 1), as the examples show."""
    program = "from ome.cli.main import run; run()"
    done = subprocess.run(
        [sys.executable, "-c", program, *args], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, f"still not so after {PATIENCE:.0f} s"
        time.sleep(0.1)


def install_crds(kubectl: Kubectl) -> None:
    """OME's CRDs, as a user installs them: `ome crds | kubectl apply -f -`."""
    kubectl("apply", "-f", "-", stdin=ome("crds"))
    kubectl("wait", "--for=condition=Established", "crd", "--all", f"--timeout={PATIENCE:.0f}s")


@pytest.fixture(scope="session")
def crds(kubectl: Kubectl) -> None:
    """OME's CRDs in the control plane that tests share."""
    install_crds(kubectl)


def permissions() -> str:
    """What docs/controller.md grants the controller."""
    text = (ROOT / "docs" / "controller.md").read_text()
    found = re.search(r"## Permissions\n\n```yaml\n(.*?)```", text, re.DOTALL)
    assert found is not None
    return found[1]


@pytest.fixture(scope="session")
def controller_kubeconfig(control_plane: ControlPlane, kubectl: Kubectl, crds: None) -> Path:
    """The kubeconfig of the controller's service account, with the documented permissions."""
    kubectl("create", "namespace", "ome")
    kubectl("apply", "-f", "-", stdin=permissions())
    account = "system:serviceaccount:ome:ome-controller-manager"
    return control_plane.as_user(
        account, ["system:serviceaccounts", "system:authenticated"]
    ).kubeconfig


@pytest.fixture(scope="session")
def ome_controller(controller_kubeconfig: Path) -> Iterator[Running]:
    """A controller that runs for all tests, as it would in its pod."""
    with running(controller_kubeconfig) as found:
        yield found
