"""What lint says between a runtime and its parents."""

from __future__ import annotations

from typing import Any

import pytest

from ome.api import ApiObject
from ome.engines.engines import Engines
from ome.lint.lint import lint
from ome.snapshot import Snapshot
from ome.testing.builders import runtime


def rt(name: str, parent: str = "", *, profile: bool = False, **spec: Any) -> ApiObject:
    annotations = {"ome.io/inherit-from": parent} if parent else {}
    if profile:
        annotations["ome.io/runtime-profile"] = "true"
    spec.setdefault("supportedModelFormats", [])
    return runtime(
        spec.pop("engine", None), name=name, metadata={"annotations": annotations}, **spec
    )


def runner(**fields: Any) -> dict[str, Any]:
    return {"runner": {"name": "ome-container", "image": "engine:v1", **fields}}


HTTP = {"httpGet": {"path": "/health", "port": 8080}}
TCP = {"tcpSocket": {"port": 8080}}
CASES: list[tuple[str, list[ApiObject], list[str]]] = [
    (
        "a profile and a child",
        [rt("base", profile=True, disabled=True), rt("c", "base", disabled=False)],
        [],
    ),
    (
        "a profile that is enabled",
        [rt("base", profile=True)],
        [
            "error ProfileNotDisabled base spec.disabled: runtimes carrying "
            'ome.io/runtime-profile="true" must also set spec.disabled: true | set spec.disabled: true, or '
            "remove the annotation"
        ],
    ),
    (
        "a missing parent",
        [rt("c", "gone")],
        [
            "error ParentNotFound c metadata.annotations[ome.io/inherit-from]: inherit-from parent "
            '"gone" not found (chain so far: [c]) | name a parent that exists, once in the chain'
        ],
    ),
    (
        "a cycle",
        [rt("c", "c")],
        [
            "error InheritanceCycle c metadata.annotations[ome.io/inherit-from]: inheritance cycle detected: "
            "[c c] | name a parent that exists, once in the chain"
        ],
    ),
    (
        "a child that nobody can use",
        [rt("base", disabled=True), rt("middle", "base"), rt("c", "middle")],
        [
            "warning DisabledInherited c spec.disabled: it inherits disabled: true from base, so services that "
            "name it are refused | set disabled: false"
        ],
    ),
    (
        "a volume, a variable and a probe of another kind, in a component and in a leader",
        [
            rt(
                "base",
                engine={
                    **runner(env=[{"name": "A", "value": "1"}], livenessProbe=HTTP),
                    "volumes": [{"name": "v", "emptyDir": {}}],
                    "leader": runner(livenessProbe=HTTP),
                },
            ),
            rt(
                "c",
                "base",
                engine={
                    **runner(env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}]),
                    "volumes": [{"name": "v", "hostPath": {"path": "/v"}}],
                    "leader": runner(livenessProbe=TCP),
                },
            ),
        ],
        [
            'error VolumeSourceConflict c spec.engineConfig.volumes[v]: volume "v" has 2 sources after the '
            "merge: emptyDir and hostPath | a layer that switches it lists in $retainKeys what stays",
            "error EnvSourceConflict c spec.engineConfig.containers[ome-container].env[A]: variable "
            '"A" has both value and valueFrom after the merge | a layer that switches it lists in $retainKeys '
            "what stays",
            "error ProbeHandlerConflict c spec.engineConfig.leader.containers[ome-container].livenessProbe: "
            "livenessProbe has 2 handlers after the merge: httpGet and tcpSocket | a layer that switches it "
            "lists in $retainKeys what stays",
        ],
    ),
    (
        "the same, switched as it should be",
        [
            rt("base", engine=runner(livenessProbe=HTTP)),
            rt("c", "base", engine=runner(livenessProbe={**TCP, "$retainKeys": ["tcpSocket"]})),
        ],
        [],
    ),
    (
        "no runner of its own",
        [
            rt("base", engine={"containers": [{"name": "x", "image": "i"}]}),
            rt("c", "base", engine={"labels": {"a": "b"}}),
        ],
        [],
    ),
]


@pytest.mark.parametrize(("title", "objects", "expected"), CASES, ids=[case[0] for case in CASES])
def test_chains(title: str, objects: list[ApiObject], expected: list[str]) -> None:
    found = [
        f"{each.severity} {each.code} {each.ref.name if each.ref else ''} {each.path}: {each.message} | {each.fix}"
        for each in lint(Snapshot.of(objects), Engines())
    ]
    assert found == expected
