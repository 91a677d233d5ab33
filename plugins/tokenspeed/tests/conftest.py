"""Builders for what the hooks are given."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from ome.engines import Container, Finding, PodView, Severity
from ome_engine_tokenspeed.detect import detect
from ome_engine_tokenspeed.findings import find

IMAGE = "docker.io/lightseekorg/tokenspeed:0.1.1"
ARGS = ["--port=8080", "--tensor-parallel-size=4", "--served-model-name=m"]

ViewBuilder = Callable[..., PodView]


def _view(
    *,
    args: list[str] | None = None,
    more: list[str] | None = None,
    command: list[str] | None = None,
    image: str = IMAGE,
    component: str = "engine",
    accelerators: int = 4,
    pod: dict[str, Any] | None = None,
    **fields: Any,
) -> PodView:
    """A well-behaved pod, with overrides; `more` adds arguments."""
    container = {
        "name": "ome-container",
        "image": image,
        "command": ["ts", "serve", "$(MODEL_PATH)"] if command is None else command,
        "args": (ARGS if args is None else args) + (more or []),
        "ports": [{"name": "http1", "containerPort": 8080}],
        "readinessProbe": {"httpGet": {"path": "/readiness", "port": 8080}},
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
