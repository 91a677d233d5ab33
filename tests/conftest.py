"""What tests of every part share."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, settings

from ome.api import API_VERSION
from ome.testing.catalog import catalog_files, catalog_path

# No test depends on how fast the machine is.
settings.register_profile(
    "ome", deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)
settings.load_profile("ome")


@pytest.fixture(scope="session")
def catalog_texts() -> list[tuple[str, bytes]]:
    """The manifests of the public catalog, read in place."""
    path = catalog_path()
    if not path.exists():
        pytest.skip(f"no catalog at {path}: set OME_CATALOG to its .tar.gz or directory")
    return list(catalog_files(path))


@pytest.fixture(scope="session")
def catalog(catalog_texts: list[tuple[str, bytes]]) -> list[tuple[str, dict[str, Any]]]:
    """Every object of the public catalog with its file name."""
    found = [
        (name, raw)
        for name, text in catalog_texts
        for raw in yaml.load_all(text, yaml.SafeLoader)
        if isinstance(raw, dict) and raw.get("apiVersion") == API_VERSION
    ]
    assert found
    return found
