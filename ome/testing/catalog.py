"""The public catalog of runtimes and models as test data: read in place, never copied.

`OME_CATALOG` names its `.tar.gz` or a directory; without it the archive is looked for beside the
repository, in `shared/data/`.
"""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ome.api import KINDS, ApiObject, parse

__all__ = ["catalog_files", "catalog_path", "model_for", "service_for"]

_DEFAULT = Path(__file__).resolve().parents[3] / "shared/data/ome-catalog-v0.1.5.tar.gz"
Json = dict[str, Any]


def catalog_path() -> Path:
    """Where the catalog is, or would be."""
    return Path(os.environ.get("OME_CATALOG") or _DEFAULT)


def catalog_files(path: Path) -> Iterator[tuple[str, bytes]]:
    """The catalog's manifests: name and bytes."""
    if path.is_dir():
        for each in sorted(path.rglob("*.yaml")):
            yield str(each.relative_to(path)), each.read_bytes()
        return
    with tarfile.open(path) as archive:
        for member in archive:
            file = archive.extractfile(member) if member.name.endswith(".yaml") else None
            if file is not None:
                yield member.name, file.read()


def model_for(runtime: ApiObject) -> ApiObject:
    """A model that the runtime's first entry is made for: its format, framework and architecture."""
    entry = runtime.raw["spec"]["supportedModelFormats"][0]
    parts = (
        "modelFormat",
        "modelFramework",
        "modelArchitecture",
        "quantization",
        "diffusionPipeline",
    )
    spec: Json = {name: entry[name] for name in parts if name in entry}
    for name in ("modelFormat", "modelFramework"):
        spec[name] = {key: spec[name][key] for key in ("name", "version") if key in spec[name]}
    if sizes := runtime.raw["spec"].get("modelSizeRange"):
        spec["modelParameterSize"] = sizes["min"]
    name = f"model-of-{runtime.name}"
    spec["storage"] = {"storageUri": f"hf://catalog/{name}", "path": f"/models/{name}"}
    return parse(_object("ClusterBaseModel", name, spec))


def service_for(runtime: ApiObject, model: ApiObject) -> ApiObject:
    """A service that names runtime and model and declares every component that the runtime has.

    Multi-node runtimes are asked for as RawDeployment.
    """
    config = runtime.raw["spec"]
    parts: Json = {
        part: {} for part in ("engine", "decoder", "router") if f"{part}Config" in config
    }
    spec: Json = {"model": {"name": model.name}, "runtime": {"name": runtime.name}, **parts}
    if any("leader" in config[f"{part}Config"] for part in parts):
        spec["deploymentMode"] = "RawDeployment"
    return parse(_object("InferenceService", f"s-{runtime.name.replace('.', '-')}"[:50], spec))


def _object(kind: str, name: str, spec: Json) -> Json:
    where = {"namespace": "catalog"} if KINDS[kind].NAMESPACED else {}
    return {
        "apiVersion": "ome.io/v1beta1",
        "kind": kind,
        "metadata": {"name": name, **where},
        "spec": spec,
    }
