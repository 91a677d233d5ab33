"""Directives and `argsPatch` from manifests to pods: every place a layer stands, warnings, provenance."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ome.api import ApiObject
from ome.engines.engines import Engines
from ome.lint.lint import lint
from ome.merging.canonical import content_hash
from ome.planning.diff import compare, render_all
from ome.planning.plan import Plan
from ome.planning.planner import plan
from ome.snapshot import Snapshot
from ome.snapshot.revision import read_revision
from ome.testing.builders import (
    ENTRY,
    container,
    deployment,
    model,
    obj,
    plan_of,
    runtime,
    service,
)

Json = dict[str, Any]
GONE = {"$patch": "delete"}
A, B = {"name": "A", "value": "1"}, {"name": "B", "value": "2"}
RUNNER: Json = {"name": "ome-container", "image": "engine:v1"}
FIX = "remove it, or correct what it names"


def runner(**fields: Any) -> Json:
    return {"runner": {**RUNNER, **fields}}


def child(engine: Json, name: str = "rt", parent: str = "base", **spec: Any) -> ApiObject:
    return runtime(
        engine, name=name, metadata={"annotations": {"ome.io/inherit-from": parent}}, **spec
    )


def pod(rendered: Plan) -> Json:
    found: Json = deployment(rendered)["spec"]["template"]["spec"]
    return found


def warnings(rendered: Plan) -> list[str]:
    return [str(each) for each in rendered.warnings if each.code == "DirectiveUnmatched"]


def clean(rendered: Plan) -> None:
    text = json.dumps(list(rendered.objects()))
    for word in ("$patch", "$retainKeys", "$deleteFrom", "argsPatch"):
        assert word not in text


def test_a_service_removes_what_its_runtime_sets() -> None:
    rendered = plan_of(
        runtime(
            {
                **runner(env=[A, B], livenessProbe={"httpGet": {"port": 1}}),
                "nodeSelector": {"a": "b"},
            }
        ),
        service(
            engine={
                "nodeSelector": {"$patch": "replace", "c": "d"},
                "runner": {"env": [{"name": "A", **GONE}], "livenessProbe": GONE},
            }
        ),
    )
    clean(rendered)
    assert container(rendered)["env"] == [B]
    assert "livenessProbe" not in container(rendered)
    assert pod(rendered)["nodeSelector"] == {"c": "d"}
    assert warnings(rendered) == []


def test_a_child_runtime_removes_what_its_parents_set() -> None:
    rendered = plan_of(
        runtime(
            {**runner(env=[A, B], args=["--a"]), "volumes": [{"name": "v", "emptyDir": {}}]},
            name="base",
        ),
        child(
            {
                "runner": {
                    "name": "ome-container",
                    "env": [{"name": "A", **GONE}],
                    "$deleteFromPrimitiveList/args": ["--a"],
                },
                "volumes": [{"name": "v", **GONE}],
            },
            name="mid",
        ),
        child(
            {"runner": {"name": "ome-container", "env": [{"$patch": "replace"}, A]}}, parent="mid"
        ),
        service(),
    )
    clean(rendered)
    assert container(rendered)["env"] == [A]
    assert "args" not in container(rendered)
    assert "volumes" not in pod(rendered)
    assert warnings(rendered) == []


def test_a_whole_component_of_a_parent_goes() -> None:
    config = {**runner(), "annotations": {"a": "b"}}
    rendered = plan_of(
        runtime(config, name="base"), child(GONE), service(engine=runner(image="own:v1"))
    )
    assert container(rendered)["image"] == "own:v1"
    assert "a" not in deployment(rendered)["metadata"]["annotations"]
    rendered = plan_of(
        runtime(config, name="base", nodeSelector={"x": "y"}),
        child(runner(image="own:v2"), **{"$patch": "replace"}),
        service(),
    )
    assert container(rendered)["image"] == "own:v2"
    assert "nodeSelector" not in pod(rendered)


@pytest.mark.parametrize(
    ("engine_config", "engine", "path"),
    [
        (runner(), {"runner": GONE}, "spec.engine.runner"),
        (runner(), GONE, "spec.engine.runner"),
        (
            {"containers": [RUNNER]},
            {"containers": [{"name": "ome-container", **GONE}]},
            "spec.engine.runner",
        ),
        ({"containers": [RUNNER]}, {"containers": [{"$patch": "replace"}]}, "spec.engine.runner"),
    ],
)
def test_an_engine_with_nothing_left_is_refused(
    engine_config: Json, engine: Json, path: str
) -> None:
    rendered = plan_of(runtime(engine_config), service(engine=engine))
    (problem,) = [problem for _, problem in rendered.refusals()]
    assert (problem.code, problem.path) == ("NoContainer", path)


def test_a_runtimes_autoscaler_goes_as_one() -> None:
    rendered = plan_of(
        runtime({**runner(), "autoscaler": {"class": "None"}}), service(engine={"autoscaler": GONE})
    )
    assert "HorizontalPodAutoscaler" in [each["kind"] for each in rendered.objects()]


NOTHING = "$patch: delete finds nothing to delete: no lower layer sets it"


def item(field: str, key: str, name: str) -> str:
    return f"$patch: delete finds nothing to delete: lower layers have no {field} item with {key} {name}"


@pytest.mark.parametrize(
    ("engine", "expected"),
    [
        ({"runner": {"livenessProbe": GONE}}, [f"runner.livenessProbe.$patch: {NOTHING}; {FIX}"]),
        ({"labels": GONE}, [f"labels.$patch: {NOTHING}; {FIX}"]),
        ({"acceleratorOverride": GONE}, [f"acceleratorOverride.$patch: {NOTHING}; {FIX}"]),
        (
            {"leader": GONE},
            [
                f"leader.$patch: {NOTHING}; the leader takes the component's own pod fields "
                "too: remove them there"
            ],
        ),
        (
            {"containers": [{"name": "side", **GONE}]},
            [f"containers[0].$patch: {item('containers', 'name', 'side')}; {FIX}"],
        ),
        (
            {"containers": [{"name": "ome-container", "env": [{"name": "A", **GONE}]}]},
            [
                f"containers[0].env[0].$patch: {item('env', 'name', 'A')}; the container is the runner: "
                "write it in runner"
            ],
        ),
        (
            {"containers": [{"name": "ome-container", "livenessProbe": {"exec": GONE}}]},
            [
                f"containers[0].livenessProbe.exec.$patch: {NOTHING}; the container is the runner: write "
                "it in runner"
            ],
        ),
    ],
)
def test_a_directive_that_finds_nothing_leaves_a_warning(engine: Json, expected: list[str]) -> None:
    plain = plan_of(runtime(runner(env=[A])), service(engine={}))
    rendered = plan_of(runtime(runner(env=[A])), service(engine=engine))
    assert warnings(rendered) == [
        f"InferenceService/demo/chat: spec.engine.{each}" for each in expected
    ]
    assert list(rendered.objects()) == list(plain.objects())


def test_layers_that_find_nothing_are_named_once_and_by_lint() -> None:
    objects = [
        runtime(runner(env=[{"name": "A", **GONE}]), name="base"),
        child({"runner": {"name": "ome-container", "args": ["x"], "stdin": True, "tty": True}}),
        service(),
        service("two"),
    ]
    expected = (
        "ClusterServingRuntime/base: spec.engineConfig.runner.env[0].$patch: "
        f"{item('env', 'name', 'A')}; {FIX}"
    )
    snapshot = Snapshot.of(objects)
    for target in snapshot.services():
        assert warnings(plan(snapshot, target, Engines())) == [expected]
    found = [each for each in lint(snapshot, Engines()) if each.code == "DirectiveUnmatched"]
    assert [(str(each.ref), each.path, str(each.severity)) for each in found] == [
        ("ClusterServingRuntime/base", "spec.engineConfig.runner.env[0].$patch", "warning")
    ]
    broken = Snapshot.of([child(runner(), parent="gone")])
    assert "DirectiveUnmatched" not in {each.code for each in lint(broken, Engines())}


def test_a_chosen_runtime_is_rendered_without_its_directives() -> None:
    auto = [{**ENTRY, "autoSelect": True}]
    config = {
        **runner(env=[{"name": "A", **GONE}, B]),
        "annotations": {"$patch": "replace", "a": "b"},
    }
    rendered = plan_of(
        runtime(config, supportedModelFormats=auto, modelSizeRange={"$patch": "delete"}),
        model(modelParameterSize="500M"),
        service(model={"name": "m"}, runtime=None),
        provenance=True,
    )
    clean(rendered)
    assert container(rendered)["env"][0] == B
    assert len(warnings(rendered)) == 3
    assert "$patch" not in json.dumps(rendered.as_json()["provenance"])


def test_leader_and_worker() -> None:
    both = {**runner(env=[A, B]), "volumes": [{"name": "v", "emptyDir": {}}]}
    config = {
        "nodeSelector": {"a": "b"},
        "leader": both,
        "worker": {**both, "size": 1},
        "annotations": {"ome.io/deploymentMode": "RawDeployment"},
    }
    engine = {
        "leader": {
            "runner": {"name": "ome-container", "env": [{"name": "A", **GONE}]},
            "volumes": [{"name": "v", **GONE}],
        },
        "worker": {
            "runner": {
                "name": "ome-container",
                "argsPatch": [{"append": ["x"]}],
                "env": [{"$patch": "replace"}],
            }
        },
        "nodeSelector": {"$patch": "replace", "c": "d"},
    }
    rendered = plan_of(runtime(config), service(engine=engine), provenance=True)
    clean(rendered)
    assert [each["name"] for each in container(rendered)["env"]] == ["B"]
    assert "volumes" not in pod(rendered)
    assert pod(rendered)["nodeSelector"] == {"c": "d"}
    provenance = rendered.provenance["engine"]
    assert not [
        path for path in provenance if "$" in path or "argsPatch" in path or "env[A]" in path
    ]
    assert "worker.runner.env[B].value" not in provenance


SWITCHES: list[tuple[Json, Json, Json]] = [
    (
        {"volumes": [{"name": "v", "emptyDir": {"medium": "Memory"}}]},
        {
            "volumes": [
                {"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}
            ]
        },
        {"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]},
    ),
    (
        runner(env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]),
        {"runner": {"env": [{"name": "A", "$retainKeys": ["name", "value"], "value": "x"}]}},
        {"env": [{"name": "A", "value": "x"}]},
    ),
    (
        runner(env=[{"name": "A", "value": "x"}]),
        {
            "runner": {
                "env": [
                    {"$patch": "replace"},
                    {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "x"}}},
                ]
            }
        },
        {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}]},
    ),
    (
        runner(readinessProbe={"httpGet": {"port": 80}, "periodSeconds": 5}),
        {
            "runner": {
                "readinessProbe": {
                    "$retainKeys": ["tcpSocket", "periodSeconds"],
                    "tcpSocket": {"port": 80},
                }
            }
        },
        {"readinessProbe": {"tcpSocket": {"port": 80}, "periodSeconds": 5}},
    ),
    (
        runner(readinessProbe={"httpGet": {"port": 80}, "periodSeconds": 5}),
        {"runner": {"readinessProbe": {"$patch": "replace", "tcpSocket": {"port": 80}}}},
        {"readinessProbe": {"tcpSocket": {"port": 80}}},
    ),
    (
        runner(readinessProbe={"httpGet": {"port": 80}, "periodSeconds": 5}),
        {"runner": {"readinessProbe": {"httpGet": GONE, "exec": {"command": ["x"]}}}},
        {"readinessProbe": {"periodSeconds": 5, "exec": {"command": ["x"]}}},
    ),
]


@pytest.mark.parametrize(("engine_config", "engine", "expected"), SWITCHES)
def test_a_switch_that_is_asked_for(engine_config: Json, engine: Json, expected: Json) -> None:
    rendered = plan_of(runtime({**runner(), **engine_config}), service(engine=engine))
    assert not list(rendered.refusals())
    found = {**pod(rendered), **container(rendered)}
    assert {name: found[name] for name in expected} == expected


def refusal(*objects: ApiObject) -> str:
    (problem,) = [problem for _, problem in plan_of(*objects).refusals()]
    return str(problem).removeprefix("InferenceService/demo/chat: engine pod: ")


def test_a_switch_that_is_not_asked_for_names_its_layers() -> None:
    base = runtime({**runner(), "volumes": [{"name": "cache", "emptyDir": {}}]}, name="base")
    mid = child({"volumes": [{"name": "cache", "hostPath": {"path": "/x"}}]})
    assert refusal(base, mid, service()) == (
        'volumes[cache]: volume "cache" has 2 sources after the merge: ClusterServingRuntime/base sets '
        "volumes[cache].emptyDir, ClusterServingRuntime/rt sets volumes[cache].hostPath; to switch, "
        "ClusterServingRuntime/rt lists what stays: $retainKeys: [name, hostPath] in volumes[cache]"
    )
    claim = {"volumes": [{"name": "cache", "persistentVolumeClaim": {"claimName": "c"}}]}
    assert refusal(base, mid, service(engine=claim)) == (
        'volumes[cache]: volume "cache" has 3 sources after the merge: ClusterServingRuntime/base sets '
        "volumes[cache].emptyDir, ClusterServingRuntime/rt sets volumes[cache].hostPath, "
        "InferenceService/demo/chat sets volumes[cache].persistentVolumeClaim; to switch, "
        "InferenceService/demo/chat lists what stays: $retainKeys: [name, persistentVolumeClaim] in "
        "volumes[cache]"
    )


def test_one_layer_that_sets_two_kinds() -> None:
    both = {"name": "v", "emptyDir": {}, "hostPath": {"path": "/x"}}
    assert refusal(runtime({**runner(), "volumes": [both]}), service()) == (
        'volumes[v]: volume "v" has 2 sources after the merge: ClusterServingRuntime/rt sets '
        "volumes[v].emptyDir, ClusterServingRuntime/rt sets volumes[v].hostPath; keep one of them"
    )


def test_a_variable_that_switches_between_sources() -> None:
    env = [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}]
    own = [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]
    place = "containers[ome-container].env[A]"
    assert refusal(runtime(runner(env=env)), service(engine={"runner": {"env": own}})) == (
        f'{place}: valueFrom of variable "A" has 2 sources after the merge: ClusterServingRuntime/rt sets '
        f"{place}.valueFrom.fieldRef, InferenceService/demo/chat sets {place}.valueFrom.secretKeyRef; to "
        "switch, InferenceService/demo/chat lists what stays: $retainKeys: [secretKeyRef] in "
        f"{place}.valueFrom"
    )
    empty = [{"name": "A", "valueFrom": {"fieldRef": None}}]
    assert "has no source" in refusal(runtime(runner(env=empty)), service())


def patch(*operations: Json) -> Json:
    return {"runner": {"name": "ome-container", "argsPatch": list(operations)}}


def to(name: str, value: str) -> Json:
    return {"set": {"name": name, "value": value}}


def test_operations_of_every_layer_are_carried_out_in_their_order() -> None:
    rendered = plan_of(
        runtime(runner(args=["--tp", "8", "--port=80", "--quiet"]), name="base"),
        child(patch(to("--tensor-parallel-size", "4"), {"append": ["--x=1"]})),
        service(engine=patch({"unset": "--quiet"}, to("--x", "2"), {"append": ["last"]})),
        provenance=True,
    )
    clean(rendered)
    assert container(rendered)["args"] == [
        "--tensor-parallel-size",
        "4",
        "--port=80",
        "--x=2",
        "last",
    ]
    layers = [
        rendered.provenance["engine"][f"containers[ome-container].args[{at}]"][1] for at in range(5)
    ]
    assert layers == [
        "ClusterServingRuntime/rt",
        "ClusterServingRuntime/rt",
        "ClusterServingRuntime/base",
        "InferenceService",
        "InferenceService",
    ]


def test_a_word_set_to_what_it_was_is_its_layers() -> None:
    rendered = plan_of(
        runtime(runner(args=["--a=1", "--b=1"])),
        service(engine=patch(to("--a", "1"))),
        provenance=True,
    )
    provenance = rendered.provenance["engine"]
    assert provenance["containers[ome-container].args[0]"] == ("--a=1", "InferenceService")
    assert provenance["containers[ome-container].args[1]"] == ("--b=1", "ClusterServingRuntime/rt")


def test_setting_args_drops_the_operations_below() -> None:
    rendered = plan_of(
        runtime({**runner(args=["--a"]), **patch({"append": ["--b"]})}, name="base"),
        child(runner(args=["--c"], argsPatch=[{"append": ["--d"]}])),
        service(),
    )
    assert container(rendered)["args"] == ["--c", "--d"]


def test_the_accelerator_class_comes_after_operations() -> None:
    config = {
        "gpu": {
            "runtimeArgsOverride": ["--a=3"],
            "tensorParallelismOverride": {"tensorParallelSize": 2},
        }
    }
    rendered = plan_of(
        runtime(
            {**runner(args=["--a=1"], argsPatch=[to("--a", "2"), to("--tp", "8")])},
            supportedModelFormats=[{**ENTRY, "acceleratorConfig": config}],
            acceleratorRequirements={"acceleratorClasses": ["gpu"]},
        ),
        obj("AcceleratorClass", "gpu", {"discovery": {}, "capabilities": {}}),
        model(),
        service(model={"name": "m"}, acceleratorSelector={"acceleratorClass": "gpu"}),
    )
    assert container(rendered)["args"] == ["--a=3", "--tp=2"]


def test_other_containers_and_the_router() -> None:
    def side(name: str) -> Json:
        return {
            "name": name,
            "image": "s",
            "args": ["--a=1"],
            "argsPatch": [{"unset": "--a"}, {"append": ["x"]}],
        }

    rendered = plan_of(
        runtime(
            {
                **runner(args=["--a"]),
                "containers": [side("side")],
                "initContainers": [side("init")],
            },
            routerConfig={"runner": {**RUNNER, "args": ["--r"]}, "config": {"A": "b"}},
        ),
        service(
            engine={"containers": [{"name": "ome-container", "argsPatch": [{"append": ["--z"]}]}]},
            router={"runner": {"argsPatch": [to("--r", "1")]}},
        ),
        provenance=True,
    )
    clean(rendered)
    found = pod(rendered)
    assert found["initContainers"] == [{"name": "init", "image": "s", "args": ["x"]}]
    assert [each["args"] for each in found["containers"]] == [["x"], ["--a", "--z"]]
    assert container(rendered, "router")["args"] == ["--r=1"]
    layer = rendered.provenance["engine"]["containers[ome-container].args[1]"][1]
    assert layer == "InferenceService"


def test_a_component_without_a_runner() -> None:
    first = {**RUNNER, "args": ["--a"], "argsPatch": [{"append": ["--b"]}]}
    rendered = plan_of(runtime({"containers": [first]}), service())
    assert container(rendered)["args"] == ["--a", "--b"]


def test_an_unset_that_finds_nothing_names_its_layer() -> None:
    rendered = plan_of(
        runtime(runner(args=["--max-len=1"]), name="base"),
        child(patch({"append": ["--x"]}, {"unset": "--max-le"})),
        service(
            engine={
                **patch({"unset": "--gone"}),
                "initContainers": [{"name": "i", "image": "i", "argsPatch": [{"unset": "-q"}]}],
            }
        ),
    )
    assert warnings(rendered) == [
        "ClusterServingRuntime/rt: spec.engineConfig.runner.argsPatch[1].unset: unset finds no --max-le on "
        'the command line of engine container ome-container; did you mean "--max-len"?',
        "InferenceService/demo/chat: spec.engine.runner.argsPatch[0].unset: unset finds no --gone on the "
        "command line of engine container ome-container; remove it, or correct the flag",
        "InferenceService/demo/chat: spec.engine.initContainers[0].argsPatch[0].unset: unset finds no -q on "
        "the command line of engine container i; remove it, or correct the flag",
    ]


def test_a_pinned_runtime_keeps_its_operations() -> None:
    live = runtime({**runner(args=["--a"]), **patch({"append": ["--b"]})}, name="base")
    kept = child(runner(argsPatch=[{"unset": "--a"}], env=[{"name": "A", **GONE}, B]))
    live = runtime(runner(args=["--a"], env=[A]), name="base")
    reference = {"name": "rt", "autoSync": False}
    first = plan_of(live, kept, service(runtime=reference))
    (written,) = first.effects
    assert written["data"]["engineConfig"]["runner"] == {
        **RUNNER,
        "args": ["--a"],
        "argsPatch": [{"unset": "--a"}],
        "env": [B],
    }
    revision = read_revision(written)
    assert revision is not None
    assert content_hash(revision.spec) == content_hash(written["data"])
    pinned = service(runtime={**reference, "revision": revision.name})
    snapshot = Snapshot.of([live, kept, pinned], revisions=[revision])
    rendered = plan(snapshot, pinned, Engines(), provenance=True)  # type: ignore[arg-type]
    assert "args" not in container(rendered)
    odd = read_revision(
        {**written, "data": {"engineConfig": {**runner(), "volumes": [{"$patch": "replace"}]}}}
    )
    assert odd is not None
    assert odd.spec == {"engineConfig": runner()}


def test_a_removal_reads_as_one_in_a_diff() -> None:
    base = runtime(runner(env=[A, B], args=["--a=1", "--b=1"]))

    def snapshot(engine: Json) -> Snapshot:
        return Snapshot.of([base, service(engine=engine)])

    after = {
        "runner": {"env": [{"name": "A", **GONE}], "argsPatch": [to("--a", "2"), {"append": ["x"]}]}
    }
    sides = (render_all(snapshot(layer), Engines()) for layer in ({}, after))
    (change,) = compare(*sides)
    found = {(each.field, each.cause) for each in change.fields}
    assert found == {
        ("containers[ome-container].env[A].name", "InferenceService"),
        ("containers[ome-container].env[A].value", "InferenceService"),
        ("containers[ome-container].args", "InferenceService"),
    }
