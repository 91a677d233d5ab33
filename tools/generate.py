"""Write the files that follow from the API models: CRDs, and Kubernetes' pod schemas.

`python tools/generate.py` rewrites the CRDs of the chart `ome-crd`. `--podschema` first rewrites
`ome/api/podschema.json` from the schemas that the package `kubernetes-validate` bundles; nothing is
fetched. `--check` writes nothing and exits 1 when a file is not what would be written.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
POD_SCHEMA = ROOT / "ome" / "api" / "podschema.json"
CRD_TEMPLATES = ROOT / "charts" / "ome-crd" / "templates"

ROOTS = [
    "io.k8s.api.core.v1.PodSpec",
    "io.k8s.api.apps.v1.DeploymentStrategy",
    "io.k8s.api.autoscaling.v2.MetricSpec",
    "io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerBehavior",
]
QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
KEPT = {
    "format",
    "required",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
}
# Defaults of the API that the bundled schemas leave to Kubernetes' own code.
DEFAULTS = {
    ("ContainerPort", "protocol"): "TCP",
    ("GRPCAction", "service"): "",
    ("LocalObjectReference", "name"): "",
}


def pod_schema() -> dict[str, Any]:
    """The structural schema of all pod-shaped parts, by short definition name."""
    folder, version = _bundled()
    source = json.loads((folder / "_definitions.json").read_text())["$defs"]
    found: dict[str, Any] = {}
    waiting = list(ROOTS)
    while waiting:
        name = waiting.pop()
        short = name.rpartition(".")[2]
        if short in found:
            continue
        found[short] = _definition(name, source)
        waiting.extend(_references(source[name]))
    for (short, field), value in DEFAULTS.items():
        found[short]["properties"][field]["default"] = value
    spec = found["PodSpec"]
    spec["properties"] = {field: spec["properties"][field] for field in _pod_fields()}
    del spec["required"]
    reachable = _reachable(found)
    return {
        "kubernetes": version,
        "definitions": {short: found[short] for short in sorted(reachable)},
    }


def _bundled() -> tuple[Path, str]:
    spec = importlib.util.find_spec("kubernetes_validate")
    if spec is None or spec.origin is None:
        raise SystemExit("generate: install kubernetes-validate to rewrite podschema.json")
    folders = Path(spec.origin).parent.glob("kubernetes-json-schema/v*-local")
    newest = max(folders, key=lambda each: [int(part) for part in re.findall(r"\d+", each.name)])
    return newest, newest.name.removesuffix("-local").removeprefix("v")


def _definition(name: str, source: dict[str, Any]) -> dict[str, Any]:
    pattern = _quantity_pattern()
    either = {"anyOf": [{"type": "integer"}, {"type": "string"}]}
    if name == QUANTITY:
        return {**either, "pattern": pattern, "x-kubernetes-int-or-string": True}
    if name == INT_OR_STRING:
        return {**either, "x-kubernetes-int-or-string": True}
    if name == OBJECT_META:
        return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return _clean(source[name])


def _pod_fields() -> list[str]:
    """OME's copy of the PodSpec: fields that Kubernetes added later are not part of the API."""
    sys.path.insert(0, str(ROOT))
    from ome.api.pod import PodFields

    return sorted(str(field.alias) for field in PodFields.model_fields.values())


def _quantity_pattern() -> str:
    sys.path.insert(0, str(ROOT))
    from ome.api.quantities import QUANTITY_PATTERN

    return QUANTITY_PATTERN


def _clean(node: dict[str, Any]) -> dict[str, Any]:
    """A schema node with what a structural schema takes, null dropped and references shortened."""
    if "$ref" in node:
        return {"$ref": node["$ref"].rpartition(".")[2]}
    clean: dict[str, Any] = {key: node[key] for key in sorted(KEPT & node.keys())}
    kind = node.get("type", "object")
    clean["type"] = kind if isinstance(kind, str) else next(k for k in kind if k != "null")
    if "items" in node:
        clean["items"] = _clean(node["items"])
    if isinstance(node.get("additionalProperties"), dict):
        clean["additionalProperties"] = _clean(node["additionalProperties"])
    if "properties" in node:
        clean["properties"] = {
            name: _clean(each) for name, each in sorted(node["properties"].items())
        }
    return clean


def _references(node: object) -> list[str]:
    """The full names of the definitions that a source node refers to."""
    if isinstance(node, dict):
        own = [node["$ref"].rpartition("/")[2]] if isinstance(node.get("$ref"), str) else []
        return own + [name for each in node.values() for name in _references(each)]
    if isinstance(node, list):
        return [name for each in node for name in _references(each)]
    return []


def _reachable(found: dict[str, Any]) -> set[str]:
    seen: set[str] = set()
    waiting = [name.rpartition(".")[2] for name in ROOTS]
    while waiting:
        short = waiting.pop()
        if short not in seen:
            seen.add(short)
            waiting.extend(_references(found[short]))
    return seen


def render_pod_schema() -> str:
    """`podschema.json`: one definition a line, so that a change of version reads as a diff."""
    schema = pod_schema()
    lines = ",\n".join(
        f"  {json.dumps(name)}: {json.dumps(each, separators=(',', ':'))}"
        for name, each in schema["definitions"].items()
    )
    return f'{{"kubernetes": {json.dumps(schema["kubernetes"])}, "definitions": {{\n{lines}\n}}}}\n'


def crd_files() -> dict[Path, str]:
    """Each CRD file of the chart with the text it has to have."""
    sys.path.insert(0, str(ROOT))
    from ome.api.crds import crds
    from ome.cli.crds import render_crd

    return {
        CRD_TEMPLATES / f"{crd['metadata']['name']}.yaml": render_crd(crd, keep=True)
        for crd in crds()
    }


def main(arguments: list[str] | None = None) -> int:
    """Write or check the files; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--check", action="store_true", help="write nothing, exit 1 on a stale file"
    )
    parser.add_argument("--podschema", action="store_true", help="rewrite podschema.json as well")
    options = parser.parse_args(arguments)
    stale = 0
    if options.podschema:
        stale += _settle({POD_SCHEMA: render_pod_schema()}, options.check)
    stale += _settle(crd_files(), options.check)
    return 1 if stale and options.check else 0


def _settle(files: dict[Path, str], check: bool) -> int:
    """Write what differs, or only say so; returns how many files differed."""
    differing = 0
    for path, text in files.items():
        if path.is_file() and path.read_text() == text:
            continue
        differing += 1
        name = path.relative_to(ROOT)
        if check:
            print(f"generate: {name} is stale; run: python tools/generate.py", file=sys.stderr)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            print(f"generate: wrote {name}")
    return differing


if __name__ == "__main__":
    raise SystemExit(main())
