"""Names within Kubernetes' limits, by the documented shortening."""

from __future__ import annotations

import hashlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ome.planning.names import (
    component_name,
    label_value,
    model_label_key,
    model_volume_name,
    shorten,
)
from ome.testing.builders import model, obj


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def test_shorten() -> None:
    assert shorten("short", 5) == "short"
    assert shorten("a" * 20, 12) == f"{digest('a' * 20)}-aaa"
    assert shorten("a" * 20, 8) == digest("a" * 20)
    starts_with_digit = next(
        text for text in map(str, range(10**40, 10**40 + 99)) if digest(text)[0].isdigit()
    )
    assert shorten(starts_with_digit, 30, letter_first=True)[0] == "a"


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("m", "models.ome.io/clusterbasemodel.m"),
        ("m" * 32, "models.ome.io/clusterbasemodel." + "m" * 32),
        ("m" * 33, f"models.ome.io/clusterbasemodel.{digest('m' * 33)}-" + "m" * 23),
    ],
)
def test_label_keys_of_cluster_models(name: str, key: str) -> None:
    assert model_label_key(model(name)) == key  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("namespace", "name", "key"),
    [
        ("demo", "m", "demo.basemodel.m"),
        ("n" * 18, "m" * 20, "n" * 18 + ".basemodel." + "m" * 20),
        ("n" * 8, "m" * 31, "n" * 8 + f".basemodel.{digest('m' * 31)}-" + "m" * 21),
        ("n" * 20, "m" * 20, f"{digest('n' * 20)}.basemodel." + "m" * 20),
        ("n" * 20, "m" * 40, f"{digest('n' * 20)}.basemodel.{digest('m' * 40)}-" + "m" * 21),
    ],
)
def test_label_keys_of_namespaced_models(namespace: str, name: str, key: str) -> None:
    spec = {"storage": {"storageUri": "hf://a/b"}}
    made = obj("BaseModel", name, spec, namespace=namespace)
    assert model_label_key(made) == f"models.ome.io/{key}"  # type: ignore[arg-type]
    assert len(key) <= 63


def test_a_volume_is_named_like_its_model_as_far_as_volumes_can() -> None:
    assert model_volume_name(model("m")) == "m"  # type: ignore[arg-type]
    assert model_volume_name(model("llama-3.3")) == "llama-3-3"  # type: ignore[arg-type]
    assert len(model_volume_name(model("m" * 80))) == 63  # type: ignore[arg-type]


def test_label_values() -> None:
    assert label_value("Mistral AI (EU)") == "Mistral-AI--EU"
    assert label_value("plain_value.1") == "plain_value.1"
    assert len(label_value("x" * 253)) == 63


@given(
    st.from_regex(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True),
    st.sampled_from(["engine", "router"]),
)
def test_component_names_are_dns_labels(service: str, component: str) -> None:
    name = component_name(service, component)
    assert re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", name)
    assert len(name) <= 63


@given(st.text(max_size=100))
def test_label_values_are_label_values(text: str) -> None:
    assert re.fullmatch(r"|[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", label_value(text))
