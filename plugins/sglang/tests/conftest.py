"""Builders for what the hooks are given."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from ome.engines import Container, Finding, PodView, Severity
from ome_engine_sglang.detect import detect
from ome_engine_sglang.findings import find

IMAGE = "docker.io/lmsysorg/sglang:v0.5.23-cu130"
LAUNCH = ["python3", "-m", "sglang.launch_server"]
ARGS = [
    "--host=0.0.0.0",
    "--port=8080",
    "--model-path=$(MODEL_PATH)",
    "--tp-size=4",
    "--pp-size=2",
    "--served-model-name=m",
]

ViewBuilder = Callable[..., PodView]


def _view(
    *,
    args: list[str] | None = None,
    more: list[str] | None = None,
    command: list[str] | None = None,
    image: str = IMAGE,
    component: str = "engine",
    accelerators: int = 8,
    pod: dict[str, Any] | None = None,
    **fields: Any,
) -> PodView:
    """A well-behaved pod, with overrides; `more` adds arguments."""
    container = {
        "name": "ome-container",
        "image": image,
        "command": LAUNCH if command is None else command,
        "args": (ARGS if args is None else args) + (more or []),
        "ports": [{"name": "http1", "containerPort": 8080}],
        "readinessProbe": _probe("/health_generate", 200),
        "livenessProbe": _probe("/health", 30),
        "startupProbe": _probe("/health_generate", 30),
        "volumeMounts": [{"name": "dshm", "mountPath": "/dev/shm"}],
        **fields,
    }
    container = {name: value for name, value in container.items() if value is not None}
    spec = {
        "containers": [container],
        "volumes": [{"name": "dshm", "emptyDir": {"medium": "Memory"}}],
        **(pod or {}),
    }
    seen = Container(container["image"], tuple(container["command"]), tuple(container["args"]))
    detection = detect(seen)
    assert detection is not None
    return PodView(component, container, spec, accelerators, detection)


def _probe(path: str, timeout: int) -> dict[str, Any]:
    return {"httpGet": {"path": path, "port": 8080}, "timeoutSeconds": timeout}


@pytest.fixture
def view() -> ViewBuilder:
    """Builds a pod view from overrides of a well-behaved pod."""
    return _view


@pytest.fixture
def found(view: ViewBuilder) -> Callable[..., list[Finding]]:
    """What the rules find in a pod, proven not to change it; notes only when asked for."""

    def ask(*, notes: bool = False, **overrides: Any) -> list[Finding]:
        given = view(**overrides)
        before = copy.deepcopy((given.container, given.pod))
        findings = find(given)
        assert (given.container, given.pod) == before
        return [each for each in findings if notes or each.severity is not Severity.NOTE]

    return ask
