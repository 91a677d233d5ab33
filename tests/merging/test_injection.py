"""Adding OME's values to a container: copies, and what the user set stays."""

from __future__ import annotations

import pytest

from ome.merging.container import fold, merge_component
from ome.merging.injection import (
    count_accelerators,
    set_env,
    with_env_if_absent,
    with_extra_mounts,
    with_resources,
)

FROM_POD = {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}


def test_a_variable_that_is_set_stays_whatever_sets_it() -> None:
    container = {"env": [FROM_POD]}
    assert with_env_if_absent(container, "A", "1") == container
    assert with_env_if_absent(container, "B", "1")["env"] == [FROM_POD, {"name": "B", "value": "1"}]
    assert with_env_if_absent({}, "B", "1") == {"env": [{"name": "B", "value": "1"}]}


def test_set_env_replaces_in_place_and_appends_sorted() -> None:
    container = {"env": [{"name": "Z", "value": "0"}, FROM_POD, {"name": "A", "value": "twice"}]}
    assert set_env(container, {"C": "3", "A": "1", "B": "2"})["env"] == [
        {"name": "Z", "value": "0"},
        {"name": "A", "value": "1"},
        {"name": "B", "value": "2"},
        {"name": "C", "value": "3"},
    ]


def test_a_mount_path_that_is_taken_keeps_its_mount() -> None:
    own = {"name": "own", "mountPath": "/models/m"}
    ours = {"name": "m", "mountPath": "/models/m", "readOnly": True}
    assert with_extra_mounts({"volumeMounts": [own]}, [ours])["volumeMounts"] == [own]
    assert with_extra_mounts({}, [ours])["volumeMounts"] == [ours]
    assert with_extra_mounts({}, []) == {}


def test_resources_are_requests_and_limits() -> None:
    container = {"resources": {"requests": {"cpu": 1, "gpu": 1}, "claims": []}}
    assert with_resources(container, {"gpu": "2"}) == {
        "resources": {"requests": {"cpu": 1, "gpu": "2"}, "limits": {"gpu": "2"}, "claims": []}
    }
    assert with_resources({"a": 1}, {}) == {"a": 1}


@pytest.mark.parametrize(
    ("resources", "count"),
    [
        ({}, 0),
        ({"limits": {"nvidia.com/gpu": 8}, "requests": {"nvidia.com/gpu": 4}}, 8),
        ({"requests": {"nvidia.com/gpu": "4"}}, 4),
        ({"limits": {"amd.com/gpu": 2}}, 2),
        ({"limits": {"amd.com/gpu": 2}, "requests": {"nvidia.com/gpu": 1}}, 1),
        ({"limits": {"cpu": 4}}, 0),
        ({"limits": {"nvidia.com/gpu": "many"}}, 0),
    ],
)
def test_count_accelerators(resources: dict[str, object], count: int) -> None:
    assert count_accelerators({"resources": resources}, ["nvidia.com/gpu", "amd.com/gpu"]) == count


def test_a_runtimes_accelerator_override_has_no_effect() -> None:
    assert merge_component({"acceleratorOverride": {"policy": "BestFit"}}, {}) == {}


def test_the_default_scheduler_fills_every_level_that_has_none() -> None:
    component = {"schedulerName": "own", "leader": {}, "worker": {"schedulerName": "w"}}
    folded = fold(component, "default")
    assert (folded["leader"]["schedulerName"], folded["worker"]["schedulerName"]) == ("own", "w")
    folded = fold({"leader": {"image": "x"}}, "default")
    assert (folded["schedulerName"], folded["leader"]["schedulerName"]) == ("default", "default")
