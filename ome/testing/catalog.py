"""The public catalog of runtimes and models as test data: read in place, never copied.

`OME_CATALOG` names its `.tar.gz` or a directory; without it the archive is looked for beside the
repository, in `shared/data/`.
"""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ome.api import KINDS, ApiObject, parse
from ome.resolution.refusals import Refused
from ome.resolution.resolve import resolve
from ome.scoring.sizes import parse_size
from ome.snapshot import Snapshot

__all__ = [
    "catalog_files",
    "catalog_path",
    "filled",
    "made_for",
    "model_for",
    "service_for",
    "winners",
]

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
    """A model that the runtime's first entry is made for: its format, framework and architecture, and a
    size in the middle of the runtime's range."""
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
        spec["modelParameterSize"] = _middle(sizes)
    name = f"model-of-{runtime.name}"
    spec["storage"] = {"storageUri": f"hf://catalog/{name}", "path": f"/models/{name}"}
    return parse(_object("ClusterBaseModel", name, spec))


def _middle(sizes: Mapping[str, str]) -> str:
    middle = (parse_size(sizes["min"]) + parse_size(sizes["max"])) / 2
    return f"{(middle / 10**6).normalize():f}M"


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


def made_for(model: ApiObject, runtimes: Mapping[str, ApiObject]) -> ApiObject | None:
    """The runtime that the catalog made for a model, by name: `srt-<model>` or `vllm-<model>`."""
    for prefix in ("srt-", "vllm-"):
        if (found := runtimes.get(prefix + model.name)) is not None:
            return found
    return None


def filled(model: ApiObject, runtime: ApiObject | None) -> tuple[ApiObject, list[str]]:
    """A model with what it leaves out taken from the first entry of the runtime made for it.

    Returns the model and the names of the fields that were filled in. A size is the middle of the
    runtime's range.
    """
    spec = dict(model.raw["spec"])
    if runtime is None:
        return model, []
    offered = dict(model_for(runtime).raw["spec"])
    offered.pop("storage")
    missing = sorted(name for name in offered if name not in spec)
    if "modelFormat" in spec:  # a described model: only its size may be missing
        missing = [name for name in missing if name == "modelParameterSize"]
    spec.update({name: offered[name] for name in missing})
    return parse({**model.raw, "spec": spec}), missing


def winners(objects: Iterable[ApiObject]) -> Json:
    """Per model of the catalog: what was filled in from where, and the winner or the refusal."""
    items = list(objects)
    runtimes = {item.name: item for item in items if item.KIND == "ClusterServingRuntime"}
    result: Json = {}
    for item in items:
        if item.KIND != "ClusterBaseModel":
            continue
        source = made_for(item, runtimes)
        model, missing = filled(item, source)
        asked: Any = parse(
            _object("InferenceService", "s", {"model": {"name": model.name}, "engine": {}})
        )
        snapshot = Snapshot.of([*runtimes.values(), model, asked])
        outcome: Json = {"filled": missing, "from": source.name if source and missing else None}
        try:
            chosen = resolve(snapshot, asked)
        except Refused as refused:
            outcome["refusal"] = refused.problem.code
        else:
            record = chosen.selection.record if chosen.selection else {}
            outcome |= {key: record[key] for key in ("name", "score", "tieBreak")}
            outcome["runnersUp"] = len(record.get("runnersUp", ()))
        result[model.name] = {
            key: value for key, value in outcome.items() if value not in (None, [])
        }
    return dict(sorted(result.items()))
