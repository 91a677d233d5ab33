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
_CLAIM: Final = re.compile(r"(?=.{1,253}$)[a-z0-9]([-a-z0-9.]*[a-z0-9])?", re.ASCII)
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
    if not path.startswith("/") or ":" in path or ".." in path.split("/") or path == "/":
        raise ComponentRefused.because(
            "StoragePathInvalid",
            f'storage path "{path}" of {model.KIND} "{model.name}" can\'t be mounted',
            path="spec.model.name",
            fix="write an absolute path below / without .. or a colon",
        )
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
    if colon and owner and ":" not in owner and owner != namespace:
        raise ComponentRefused.because(
            "PvcNamespace",
            f'{model.KIND} "{model.name}" references PVC in namespace "{owner}", but InferenceService '
            f'is in namespace "{namespace}"; Kubernetes does not allow pods to mount PVCs from '
            f'another namespace. Either move the InferenceService to namespace "{owner}" or replicate '
            f'the PVC into namespace "{namespace}".',
            path="spec.model.name",
        )
    if not _CLAIM.fullmatch(bare) or ":" in owner or ".." in sub.split("/"):
        raise ComponentRefused.because(
            "StorageUriMalformed",
            f'storage URI "{uri}" of {model.KIND} "{model.name}" is malformed',
            path="spec.model.name",
            fix="write pvc://CLAIM/SUBPATH, for a ClusterBaseModel pvc://NAMESPACE:CLAIM/SUBPATH",
        )
    volume = {"name": name, "persistentVolumeClaim": {"claimName": bare, "readOnly": True}}
    return volume, ({"subPath": sub.strip("/")} if sub.strip("/") else {})


def overlay_mounts(context: ServiceContext) -> dict[str, ModelMount]:
    """The overlay models by the variable that holds their path; missing and disabled ones are left
    out with a warning (OME inference-services document, "The model")."""
    mounts: dict[str, ModelMount] = {}
    owners: dict[str, str] = {}
    primary = context.spec.get("model") or {}
    for reference in primary.get("overlays") or ():
        name = reference.get("name") or ""
        _check_overlay(name, reference, primary, owners)
        kind = reference.get("kind") or "ClusterBaseModel"
        model = find_model(context.snapshot, context.service.namespace, name, kind)
        if model is None or (model.raw.get("spec") or {}).get("disabled") is True:
            why = "doesn't exist" if model is None else "is disabled"
            told = "not found" if model is None else why
            context.overlays[name] = f'overlay "{name}" {told}'
            context.warn(
                "OverlaySkipped",
                f'overlay "{name}" {why}: it is left out',
                path=f"spec.model.overlays[{name}]",
            )
            continue
        mounts[_variable(name)] = made = _overlay_mount(model, context.service.namespace)
        context.overlays[name] = _mounted(model, name, made)
    return mounts


def _mounted(model: Model, name: str, made: ModelMount) -> dict[str, str]:
    """An overlay as status lists it."""
    spec = model.raw.get("spec") or {}
    path = {} if made.mount is None else {"mountPath": str(made.mount["mountPath"])}
    distribution = spec.get("distribution") or "PerNode"
    return {"name": name, "envVar": _variable(name), **path, "distribution": distribution}


def _variable(overlay: str) -> str:
    return f"OVERLAY_{overlay.replace('-', '_').upper()}_MODEL_PATH"


def _check_overlay(
    name: str, reference: Mapping[str, Any], primary: Mapping[str, Any], owners: dict[str, str]
) -> None:
    """An overlay is named, once, is not the main model, and has a variable of its own."""
    path = f"spec.model.overlays[{name}]"
    default = "ClusterBaseModel"
    same_kind = (reference.get("kind") or default) == (primary.get("kind") or default)
    code, text, variable = "", "", _variable(name)
    if not name:
        code, text = "OverlayNameEmpty", "overlay name cannot be empty"
    elif same_kind and name == primary.get("name"):
        code = "OverlayIsPrimary"
        text = f'overlay "{name}" must not reference the primary model of the same kind/apiGroup'
    elif name in owners.values():
        code, text = "OverlayDuplicate", f'overlay "{name}" is declared more than once'
    elif variable in owners:
        code = "OverlayEnvClash"
        text = (
            f'overlays "{owners[variable]}" and "{name}" both sanitize to env var {variable}; rename one '
            "(hyphens and underscores collapse to the same form)"
        )
    if text:
        raise ComponentRefused.because(code, text, path=path, reason="OverlayResolveError")
    owners[variable] = name


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
