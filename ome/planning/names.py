"""Names, label keys and label values, within Kubernetes' limits.

A text that is too long becomes the first 8 hex digits of its SHA-256, a dash and its own tail: the
documented shape for model labels and the `app` label, and ours wherever the documents say nothing.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

from ome.api import BaseModel, ClusterBaseModel

__all__ = ["component_name", "label_value", "model_label_key", "model_volume_name", "shorten"]

MAX_NAME: Final = 63
_HASH: Final = 8
_MODEL_LABELS: Final = "models.ome.io/"
# A label key's name part holds 63 characters; the documented limits leave room for prefixes.
_CLUSTER_MODEL_ROOM: Final = 32
_MODEL_ROOM: Final = 38
_LEAST_NAMESPACE: Final = 8


def shorten(text: str, most: int, *, letter_first: bool = False) -> str:
    """`text` itself if it fits, else a hash of it, a dash and its tail, `most` characters in all.

    With `letter_first` a leading digit of the hash becomes `a`, as DNS labels need.
    """
    if len(text) <= most:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:_HASH]
    if letter_first and digest[0].isdigit():
        digest = "a" + digest[1:]
    room = most - _HASH - 1
    return f"{digest}-{text[len(text) - room :]}" if room > 0 else digest[:most]


def component_name(service: str, component: str) -> str:
    """The name of a component's objects and the value of its `app` label."""
    return shorten(f"{service}-{component}", MAX_NAME, letter_first=True)


def label_value(text: str) -> str:
    """`text` as a label value: characters that labels don't take become `-`, at most 63 in all."""
    clean = re.sub(r"[^A-Za-z0-9._-]", "-", text).strip("-._")
    return shorten(clean, MAX_NAME).strip("-._")


def model_label_key(model: BaseModel | ClusterBaseModel) -> str:
    """The node label that says a model is ready there (OME base-models document, "Node labels")."""
    if not model.namespace:
        return f"{_MODEL_LABELS}clusterbasemodel.{shorten(model.name, _CLUSTER_MODEL_ROOM)}"
    namespace, name = model.namespace, model.name
    if len(namespace) + len(name) > _MODEL_ROOM:
        namespace = shorten(namespace, _LEAST_NAMESPACE)
        name = shorten(name, _MODEL_ROOM - len(namespace))
    return f"{_MODEL_LABELS}{namespace}.basemodel.{name}"


def model_volume_name(model: BaseModel | ClusterBaseModel) -> str:
    """The model's volume: named like the model, as far as a volume's name (a DNS label) allows."""
    return shorten(re.sub(r"[^a-z0-9-]", "-", model.name), MAX_NAME, letter_first=True)
