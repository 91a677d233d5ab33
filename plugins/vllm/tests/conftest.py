"""Builders for what the hooks are given."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from ome.engines import Container, Finding, PodView, Severity
from ome_engine_vllm.detect import detect
from ome_engine_vllm.findings import find

IMAGE = "docker.io/vllm/vllm-openai:v0.33.0"
LAUNCH = ["vllm", "serve", "$(MODEL_PATH)"]
ARGS = ["--port=8080", "--tensor-parallel-size=4", "--pipeline-parallel-size=2"]

ViewBuilder = Callable[..., PodView]


def _view(
    *,
    args: list[str] | None = None,
    more: list[str] | None = None,
    command: list[str] | None = None,
    image: str = IMAGE,
    version: str | None = None,
    component: str = "engine",
    accelerators: int = 8,
    service: str = "chat",
    pod: dict[str, Any] | None = None,
    **fields: Any,
) -> PodView:
    """A well-behaved pod, with overrides; `more` adds arguments, `version` changes the image's tag."""
    tag = {None: image, "": "vllm/vllm-openai:latest"}.get(version, f"vllm/vllm-openai:v{version}")
    container = {
        "name": "ome-container",
        "image": tag,
        "command": LAUNCH if command is None else command,
        "args": (ARGS if args is None else args) + (more or []),
        "ports": [{"name": "http1", "containerPort": 8080}],
        "readinessProbe": {"httpGet": {"path": "/health", "port": 8080}, "timeoutSeconds": 30},
        "livenessProbe": {"httpGet": {"path": "/health", "port": 8080}, "timeoutSeconds": 30},
        "volumeMounts": [{"name": "dshm", "mountPath": "/dev/shm"}],
        **fields,
    }
    container = {name: value for name, value in container.items() if value is not None}
    spec = {
        "containers": [container],
        "volumes": [{"name": "dshm", "emptyDir": {"medium": "Memory"}}],
        "terminationGracePeriodSeconds": 30,
        **(pod or {}),
    }
    seen = Container(container["image"], tuple(container["command"]), tuple(container["args"]))
    detection = detect(seen)
    assert detection is not None
    return PodView(component, container, spec, accelerators, detection, service)


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
