"""Fixtures for the tests of an engine plugin.

`pytest_plugins = ["ome.testing.pytest_plugin"]` in its root `conftest.py` turns them on.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ome.api import ApiObject
from ome.engines.discovery import discover
from ome.engines.engines import Engines
from ome.planning.plan import Plan
from ome.testing.builders import plan_of

__all__ = ["installed_engines", "plan_service"]


@pytest.fixture(scope="session")
def installed_engines() -> Engines:
    """The engine plugins that are installed, as `ome` finds them."""
    return discover()


@pytest.fixture
def plan_service(installed_engines: Engines) -> Callable[..., Plan]:
    """Plan the only InferenceService among some objects, with the installed engines."""

    def plan(*objects: ApiObject) -> Plan:
        return plan_of(*objects, engines=installed_engines)

    return plan
