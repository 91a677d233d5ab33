"""What a model brings to a pod: its path, volume, mount and node label.

Source: OME serving-runtimes and "Serve models from a PVC" documents (v1.3).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ome.planning.context import ComponentRefused, ServiceContext
from ome.planning.names import MAX_NAME, model_label_key, model_volume_name, shorten
from ome.resolution.resolve import Model, find_model

__all__ = ["ModelMount", "model_mount", "overlay_mounts"]

MODEL_ROOT: Final = "/opt/ml/model"
OVERLAY_ROOT: Final = "/opt/ml/model-overlays"
_PVC: Final = "pvc://"
_LOCAL: Final = "local://"


@dataclass(frozen=True, slots=True)
class ModelMount:
    """How pods see a model; `path` is None when nobody says where the weights are."""

    path: str | None
    volume: Mapping[str, Any] | None = None
    mount: Mapping[str, Any] | None = None
    node_label: str | None = None


def model_mount(model: Model, namespace: str) -> ModelMount:
    """The main model's volume and mount for a pod in `namespace`."""
    name = model_volume_name(model)
    storage = (model.raw.get("spec") or {}).get("storage") or {}
    uri = storage.get("storageUri") or ""
    if uri.startswith(_PVC):
        volume, sub_path = _claim(model, uri, name, namespace)
        mount = {"name": name, "mountPath": MODEL_ROOT, **sub_path, "readOnly": True}
        return ModelMount(MODEL_ROOT, volume, mount)
    label = model_label_key(model)
    path = _host_path(storage, uri)
    if not path:
        return ModelMount(None, node_label=label)
    return ModelMount(
        path,
        {"name": name, "hostPath": {"path": path}},
        {"name": name, "mountPath": path, "readOnly": True},
        label,
    )


def _host_path(storage: Mapping[str, Any], uri: str) -> str | None:
    local = uri.removeprefix(_LOCAL) if uri.startswith(_LOCAL) else None
    return storage.get("path") or local or None


def _claim(
    model: Model, uri: str, name: str, namespace: str
) -> tuple[dict[str, Any], dict[str, str]]:
    claim, _, sub = uri.removeprefix(_PVC).partition("/")
    owner, colon, bare = claim.rpartition(":")
    if colon and owner and owner != namespace:
        raise ComponentRefused.because(
            "PvcNamespace",
            f'{model.KIND} "{model.name}" references PVC in namespace "{owner}", but InferenceService '
            f'is in namespace "{namespace}"; Kubernetes does not allow pods to mount PVCs from '
            f'another namespace. Either move the InferenceService to namespace "{owner}" or replicate '
            f'the PVC into namespace "{namespace}".',
            path="spec.model.name",
        )
    volume = {"name": name, "persistentVolumeClaim": {"claimName": bare, "readOnly": True}}
    return volume, ({"subPath": sub.strip("/")} if sub.strip("/") else {})


def overlay_mounts(context: ServiceContext) -> dict[str, ModelMount]:
    """The overlay models by the variable that holds their path; missing and disabled ones are left
    out with a warning (OME inference-services document, "The model")."""
    mounts: dict[str, ModelMount] = {}
    for reference in (context.spec.get("model") or {}).get("overlays") or ():
        name = reference.get("name") or ""
        kind = reference.get("kind") or "ClusterBaseModel"
        model = find_model(context.snapshot, context.service.namespace, name, kind)
        if model is None or (model.raw.get("spec") or {}).get("disabled") is True:
            why = "doesn't exist" if model is None else "is disabled"
            context.warn(
                "OverlaySkipped",
                f'overlay "{name}" {why}: it is left out',
                path=f"spec.model.overlays[{name}]",
            )
            continue
        variable = f"OVERLAY_{re.sub('[-.]', '_', name).upper()}_MODEL_PATH"
        mounts[variable] = _overlay_mount(model, context.service.namespace)
    return mounts


def _overlay_mount(model: Model, namespace: str) -> ModelMount:
    main = model_mount(model, namespace)
    if main.volume is None or main.mount is None:
        return main
    name = shorten(f"model-overlay-{main.volume['name']}", MAX_NAME, letter_first=True)
    path = f"{OVERLAY_ROOT}/{model.name}"
    return ModelMount(
        path,
        {**main.volume, "name": name},
        {**main.mount, "name": name, "mountPath": path},
        main.node_label,
    )
