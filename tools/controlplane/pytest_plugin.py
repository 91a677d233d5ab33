"""Fixtures for tests that need a control plane. One that isn't built is an error, not a skip."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest

from controlplane.kubectl import Kubectl
from controlplane.plane import ControlPlane

__all__ = ["control_plane", "kubectl", "namespace"]


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    """One control plane for all tests of a run."""
    with ControlPlane.start() as plane:
        yield plane


@pytest.fixture(scope="session")
def kubectl(control_plane: ControlPlane) -> Kubectl:
    """kubectl as a user who may do everything."""
    return control_plane.kubectl


@pytest.fixture
def namespace(kubectl: Kubectl) -> Iterator[str]:
    """The name of a namespace of this test's own."""
    name = f"t-{secrets.token_hex(4)}"
    kubectl("create", "namespace", name)
    yield name
    kubectl("delete", "namespace", name, "--wait=false")
