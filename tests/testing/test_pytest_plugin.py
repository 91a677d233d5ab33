"""The fixtures for plugins' tests."""

from collections.abc import Callable
from typing import Any

from ome.engines.engines import Engines
from ome.testing.builders import runtime, service


def test_a_service_is_planned_with_the_installed_engines(
    plan_service: Callable[..., Any], installed_engines: Engines
) -> None:
    assert list(plan_service(runtime(), service()).objects())
    assert not installed_engines.errors
