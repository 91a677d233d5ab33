"""The plan as a whole: modes, ingress, order, determinism, purity, provenance."""

from __future__ import annotations

import copy
import itertools
import json
import types
from typing import Any

import pytest

from ome.engines import CONTRACT, EngineInfo, hookimpl
from ome.engines.engines import Engines, register
from ome.planning.plan import Apply, Hold
from ome.planning.planner import plan
from ome.snapshot import Config, IngressConfig, Snapshot
from ome.testing.builders import ENTRY, container, deployment, model, obj, plan_of, runtime, service

Json = dict[str, Any]
RUNNER = {"name": "ome-container", "image": "engine:v1"}
ROUTER = {"runner": {"name": "router", "image": "router:v1"}}


def kinds(rendered: Any) -> list[str]:
    return [item["kind"] for item in rendered.objects()]


def test_a_router_comes_with_its_access() -> None:
    rendered = plan_of(
        runtime(routerConfig=ROUTER), service(router={"config": {"B": "2", "A": "1"}})
    )
    router = rendered.actions["router"]
    assert isinstance(router, Apply)
    assert [item["kind"] for item in router.objects][:4] == [
        "ServiceAccount",
        "Role",
        "RoleBinding",
        "Deployment",
    ]
    pod = deployment(rendered, "router")["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == "chat-router"
    assert pod["containers"][0]["env"] == [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]
    (role,) = (item for item in router.objects if item["kind"] == "Role")
    assert role["rules"] == [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}
    ]


def test_router_config_beats_a_variable_of_the_same_name() -> None:
    routed = {"runner": {**ROUTER["runner"], "env": [{"name": "A", "value": "old"}]}}
    rendered = plan_of(runtime(routerConfig=routed), service(router={"config": {"A": "new"}}))
    assert container(rendered, "router", "router")["env"] == [{"name": "A", "value": "new"}]


def test_everything_is_owned_by_the_service() -> None:
    rendered = plan_of(
        runtime(routerConfig=ROUTER, minAvailable=1),
        service(router={}, metadata={"uid": "u-1"}),
        config=Config(raw_pdb={"maxUnavailable": 1}),
    )
    reference = {
        "apiVersion": "ome.io/v1beta1",
        "kind": "InferenceService",
        "name": "chat",
        "controller": True,
        "blockOwnerDeletion": True,
        "uid": "u-1",
    }
    assert all(item["metadata"]["ownerReferences"] == [reference] for item in rendered.objects())
    assert all(item["metadata"]["namespace"] == "demo" for item in rendered.objects())


def test_a_service_that_was_never_applied_owns_nothing() -> None:
    rendered = plan_of(runtime(), service())
    assert all("ownerReferences" not in item["metadata"] for item in rendered.objects())


def test_a_pod_monitor_only_where_its_api_is_served() -> None:
    assert "PodMonitor" in kinds(plan_of(runtime(), service()))
    assert "PodMonitor" not in kinds(plan_of(runtime(), service(), served=frozenset()))


def test_pod_monitor_ports_and_extras() -> None:
    ports = [{"containerPort": 1, "name": "http"}, {"containerPort": 2, "name": "metrics"}]
    rt = runtime(
        {
            "runner": {**RUNNER, "ports": ports},
            "annotations": {"prometheus.ome.io/extra-endpoints": "http:/stats, x, admin:"},
        }
    )
    config = Config(
        pod_monitor={"labels": {"release": "prom"}, "relabelings": [{"action": "drop"}]}
    )
    (monitor,) = (
        i for i in plan_of(rt, service(), config=config).objects() if i["kind"] == "PodMonitor"
    )
    assert monitor["metadata"]["labels"]["release"] == "prom"
    assert monitor["metadata"]["labels"]["app"] == "chat-engine"
    assert [(e["port"], e["path"]) for e in monitor["spec"]["podMetricsEndpoints"]] == [
        ("metrics", "/metrics"),
        ("http", "/stats"),
        ("admin", "/metrics"),
    ]
    assert monitor["spec"]["podMetricsEndpoints"][0]["relabelings"] == [{"action": "drop"}]


def test_ingress_creation_on_is_said_and_renders_no_service_in_front() -> None:
    config = Config(ingress=IngressConfig(creation_disabled=False))
    rendered = plan_of(runtime(), service(), config=config)
    assert isinstance(rendered.actions["ingress"], Hold)
    assert [problem.code for _, problem in rendered.refusals()] == ["IngressNotRendered"]
    assert not rendered.conditions
    annotated = service(metadata={"annotations": {"ome.io/ingress-disable-creation": "true"}})
    assert isinstance(plan_of(runtime(), annotated, config=config).actions["ingress"], Apply)


def test_external_service_type_and_annotations() -> None:
    annotations = {
        "ome.io/service-type": "LoadBalancer",
        "ome.io/load-balancer-ip": "10.0.0.1",
        "service.beta.kubernetes.io/x": "y",
        "other": "z",
    }
    rendered = plan_of(runtime(), service(metadata={"annotations": annotations}))
    external = list(rendered.objects())[-1]
    assert external["spec"]["type"] == "LoadBalancer"
    assert external["spec"]["loadBalancerIP"] == "10.0.0.1"
    assert external["metadata"]["annotations"] == {"service.beta.kubernetes.io/x": "y"}


def test_unnamed_ports_get_names_and_odd_service_types_are_cluster_ips() -> None:
    ports = [{"containerPort": 1}, {"containerPort": 2, "protocol": "UDP"}]
    rt = runtime(
        {"runner": {**RUNNER, "ports": ports}, "annotations": {"ome.io/service-type": "Odd"}}
    )
    (made,) = (
        i
        for i in plan_of(rt, service()).objects()
        if i["metadata"]["name"] == "chat-engine" and i["kind"] == "Service"
    )
    assert made["spec"]["type"] == "ClusterIP"
    assert made["spec"]["ports"] == [
        {"name": "port-1", "port": 1, "targetPort": 1, "protocol": "TCP"},
        {"name": "port-2", "port": 2, "targetPort": 2, "protocol": "UDP"},
    ]


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (None, {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}),
        (
            {"type": "RollingUpdate"},
            {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
        ),
        (
            {"rollingUpdate": {"maxSurge": "50%"}},
            {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "50%"}},
        ),
        ({"type": "Recreate"}, {"type": "Recreate"}),
    ],
)
def test_deployment_strategy(strategy: Json | None, expected: Json) -> None:
    engine = {} if strategy is None else {"deploymentStrategy": strategy}
    assert deployment(plan_of(runtime(), service(engine=engine)))["spec"]["strategy"] == expected


def test_pod_and_container_defaults() -> None:
    rendered = plan_of(runtime(), service(), config=Config(termination_grace_seconds=600))
    pod = deployment(rendered)["spec"]["template"]["spec"]
    assert {key: pod[key] for key in pod if key != "containers"} == {
        "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 600,
    }
    assert pod["containers"] == [
        {
            "imagePullPolicy": "IfNotPresent",
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
            "name": "ome-container",
            "image": "engine:v1",
            "readinessProbe": {
                "tcpSocket": {"port": 8080},
                "timeoutSeconds": 1,
                "periodSeconds": 10,
                "successThreshold": 1,
                "failureThreshold": 3,
            },
        }
    ]


def test_no_default_probe_where_a_profile_brings_one_or_the_name_differs() -> None:
    profile = {"annotations": {"runtime.ome.io/probe-profile": "sglang-http"}}
    assert "readinessProbe" not in container(plan_of(runtime(), service(engine=profile)))
    rt = runtime({"runner": {"name": "own", "image": "x"}})
    assert "readinessProbe" not in container(plan_of(rt, service()), name="own")


def test_the_runner_lies_under_a_listed_container_of_its_name() -> None:
    rt = runtime({"runner": {**RUNNER, "args": ["--a"], "env": [{"name": "A", "value": "1"}]}})
    listed = {"name": "ome-container", "args": ["--b"], "env": [{"name": "B", "value": "2"}]}
    engine = {"containers": [{"name": "side", "image": "s"}, listed]}
    rendered = plan_of(rt, service(engine=engine))
    pod = deployment(rendered)["spec"]["template"]["spec"]
    assert [item["name"] for item in pod["containers"]] == ["side", "ome-container"]
    assert pod["containers"][1]["args"] == ["--b"]
    assert [item["name"] for item in pod["containers"][1]["env"]] == ["A", "B"]


def test_without_a_runner_the_first_container_serves_and_only_placeholders_apply() -> None:
    rt = runtime({"containers": [{"name": "own", "image": "x", "args": ["{{.Name}}"]}]})
    rendered = plan_of(rt, model(), service(model={"name": "m"}))
    own = container(rendered, name="own")
    assert own["args"] == ["chat"]
    assert "env" not in own


def test_a_leader_in_raw_deployment_mode() -> None:
    gpus = {"limits": {"nvidia.com/gpu": 2}}
    config = {
        "nodeSelector": {"zone": "a"},
        "leader": {"runner": {**RUNNER, "resources": gpus}, "nodeSelector": {"disk": "ssd"}},
        "worker": {"size": 2, "runner": RUNNER},
    }
    engine = {"leader": {"nodeSelector": {"pool": "own"}, "runner": {"name": "ome-container"}}}
    rendered = plan_of(
        runtime(config, nodeSelector={"pool": "rt"}),
        model(),
        service(model={"name": "m"}, deploymentMode="RawDeployment", engine=engine),
    )
    pod = deployment(rendered)["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == {
        "zone": "a",
        "disk": "ssd",
        "pool": "own",
        "models.ome.io/clusterbasemodel.m": "Ready",
    }
    assert {"name": "PARALLELISM_SIZE", "value": "6"} in container(rendered)["env"]


@pytest.mark.parametrize(("size", "value"), [(None, "4"), (3, "8")])
def test_parallelism_size_counts_the_worker_pods(size: int | None, value: str) -> None:
    worker = {"runner": RUNNER} if size is None else {"runner": RUNNER, "size": size}
    leader = {"runner": {**RUNNER, "resources": {"requests": {"nvidia.com/gpu": "2"}}}}
    rendered = plan_of(
        runtime({"leader": leader, "worker": worker}), service(deploymentMode="RawDeployment")
    )
    assert {"name": "PARALLELISM_SIZE", "value": value} in container(rendered)["env"]


def test_a_class_adds_affinity_unless_the_service_has_one() -> None:
    wanted = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}
    gpu = obj(
        "AcceleratorClass",
        "gpu",
        {"discovery": {"affinity": {"nodeAffinity": wanted}}, "capabilities": {}},
    )
    rt = runtime(acceleratorRequirements={"acceleratorClasses": ["gpu"]})
    chosen = {"acceleratorClass": "gpu"}
    rendered = plan_of(gpu, rt, service(acceleratorSelector=chosen))
    assert deployment(rendered)["spec"]["template"]["spec"]["affinity"] == {"nodeAffinity": wanted}
    own = {"affinity": {"podAffinity": {}}}
    rendered = plan_of(gpu, rt, service(acceleratorSelector=chosen, engine=own))
    assert "nodeAffinity" not in deployment(rendered)["spec"]["template"]["spec"]["affinity"]


def test_the_services_own_resources_keep_the_classes_away() -> None:
    spec = {
        "discovery": {},
        "capabilities": {},
        "resources": [{"name": "nvidia.com/gpu", "quantity": "8"}],
    }
    gpu = obj("AcceleratorClass", "gpu", spec)
    rt = runtime(acceleratorRequirements={"acceleratorClasses": ["gpu"]})
    engine = {"runner": {"name": "ome-container", "resources": {"limits": {"cpu": 1}}}}
    rendered = plan_of(
        gpu, rt, service(acceleratorSelector={"acceleratorClass": "gpu"}, engine=engine)
    )
    assert container(rendered)["resources"] == {"limits": {"cpu": 1}}


def test_a_tensor_parallelism_override_keeps_the_users_parallelism_size() -> None:
    entry = {
        "modelFormat": {"name": "safetensors", "version": "1.0.0"},
        "modelFramework": {"name": "transformers", "version": "4.50.0"},
        "acceleratorConfig": {"gpu": {"tensorParallelismOverride": {"tensorParallelSize": 2}}},
    }
    gpu = obj("AcceleratorClass", "gpu", {"discovery": {}, "capabilities": {}})
    command = ["serve", "--tp", "8"]
    env = [{"name": "PARALLELISM_SIZE", "value": "7"}]
    resources = {"limits": {"nvidia.com/gpu": 8}}
    rt = runtime(
        {"runner": {**RUNNER, "command": command, "env": env, "resources": resources}},
        supportedModelFormats=[entry],
        acceleratorRequirements={"acceleratorClasses": ["gpu"]},
    )
    rendered = plan_of(
        gpu,
        rt,
        model(),
        service(model={"name": "m"}, acceleratorSelector={"acceleratorClass": "gpu"}),
    )
    assert container(rendered)["command"] == ["serve", "--tp", "2"]
    assert container(rendered)["env"][0] == {"name": "PARALLELISM_SIZE", "value": "7"}


def test_overlays_are_mounted_and_missing_ones_left_out() -> None:
    overlays = [{"name": "lora-a"}, {"name": "gone"}, {"name": "off"}]
    rendered = plan_of(
        runtime(),
        model(),
        model("lora-a"),
        model("off", disabled=True),
        service(model={"name": "m", "overlays": overlays}),
    )
    made = container(rendered)
    assert {"name": "OVERLAY_LORA_A_MODEL_PATH", "value": "/opt/ml/model-overlays/lora-a"} in made[
        "env"
    ]
    assert made["volumeMounts"][-1] == {
        "name": "model-overlay-lora-a",
        "mountPath": "/opt/ml/model-overlays/lora-a",
        "readOnly": True,
    }
    assert [str(warning) for warning in rendered.warnings] == [
        'InferenceService/demo/chat: spec.model.overlays[gone]: overlay "gone" doesn\'t exist: it is left out',
        'InferenceService/demo/chat: spec.model.overlays[off]: overlay "off" is disabled: it is left out',
    ]


def test_control_annotations_never_reach_a_pod() -> None:
    annotations = {
        "ome.io/runtime-sync": "t1",
        "ome.io/rollout-promote": "x",
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
        "team": "red",
    }
    rendered = plan_of(runtime(), service(metadata={"annotations": annotations}))
    made = deployment(rendered)["spec"]["template"]["metadata"]["annotations"]
    assert made == {"team": "red", "ome.io/serving-runtime": "rt"}


@pytest.mark.parametrize(
    ("annotations", "labels"),
    [
        ({"ome.io/volcano-queue": "q", "kueue-enabled": ""}, {"volcano.sh/queue-name": "q"}),
        ({"ome.io/dedicated-ai-cluster": "d"}, {"volcano.sh/queue-name": "d"}),
        (
            {"ome.io/dedicated-ai-cluster": "d", "kueue-enabled": ""},
            {
                "kueue.x-k8s.io/queue-name": "d",
                "kueue.x-k8s.io/priority-class": "kueue-scheduling-high-priority",
            },
        ),
    ],
)
def test_queue_labels(annotations: dict[str, str], labels: dict[str, str]) -> None:
    rendered = plan_of(runtime(), service(metadata={"annotations": annotations}))
    made = deployment(rendered)["metadata"]["labels"]
    assert labels.items() <= made.items()


def full_input() -> list[Any]:
    gpu = obj(
        "AcceleratorClass", "gpu", {"discovery": {"nodeSelector": {"g": "1"}}, "capabilities": {}}
    )
    entry = {
        "modelFormat": {"name": "safetensors", "version": "1.0.0"},
        "modelFramework": {"name": "transformers", "version": "4.50.0"},
        "acceleratorConfig": {
            "gpu": {"runtimeArgsOverride": ["--mem=1"], "environmentOverride": {"B": "2", "A": "1"}}
        },
    }
    base = runtime({"runner": {**RUNNER, "args": ["--n={{.Name}}"]}}, name="base", disabled=True)
    rt = runtime(
        {"runner": {**RUNNER, "image": "engine:v2"}},
        routerConfig=ROUTER,
        disabled=False,
        supportedModelFormats=[entry],
        acceleratorRequirements={"acceleratorClasses": ["gpu"]},
        nodeSelector={"pool": "p"},
        metadata={"annotations": {"ome.io/inherit-from": "base"}},
    )
    svc = service(
        model={"name": "m"},
        acceleratorSelector={"acceleratorClass": "gpu"},
        engine={
            "minReplicas": 2,
            "labels": {"tier": "a"},
            "runner": {"env": [{"name": "C", "value": "3"}]},
        },
        router={},
        metadata={"labels": {"team": "red"}},
    )
    return [gpu, base, rt, model(), svc]


def test_planning_twice_gives_the_same_bytes_and_changes_no_input() -> None:
    objects = full_input()
    before = copy.deepcopy([item.raw for item in objects])
    snapshot = Snapshot.of(objects)
    (target,) = snapshot.services()
    first, second = (plan(snapshot, target, Engines(), provenance=True).as_json() for _ in range(2))
    assert json.dumps(first) == json.dumps(second)
    assert [item.raw for item in objects] == before


def test_the_order_of_the_input_changes_nothing() -> None:
    objects = full_input()
    texts = {
        json.dumps(plan_of(*shuffled).as_json()) for shuffled in itertools.permutations(objects)
    }
    assert len(texts) == 1


def test_provenance_changes_no_object_and_names_the_layer_of_every_leaf() -> None:
    plain = plan_of(*full_input())
    traced = plan_of(*full_input(), provenance=True)
    assert list(plain.objects()) == list(traced.objects())
    assert not plain.provenance
    layers = {path: layer for path, (_, layer) in traced.provenance["engine"].items()}
    runner = "containers[ome-container]"
    expected = {
        f"{runner}.image": "ClusterServingRuntime/rt",
        f"{runner}.name": "ClusterServingRuntime/rt",
        f"{runner}.args[0]": "ClusterServingRuntime/base",
        f"{runner}.args[1]": "AcceleratorClass/gpu",
        f"{runner}.env[A].value": "AcceleratorClass/gpu",
        f"{runner}.env[C].value": "InferenceService",
        f"{runner}.env[MODEL_PATH].value": "OME",
        f"{runner}.imagePullPolicy": "default",
        f"{runner}.readinessProbe.tcpSocket.port": "default",
        "nodeSelector.g": "AcceleratorClass/gpu",
        "nodeSelector.pool": "ClusterServingRuntime/rt",
        "nodeSelector[models.ome.io/clusterbasemodel.m]": "OME",
        "volumes[m].hostPath.path": "OME",
        "minReplicas": "InferenceService",
        "labels.tier": "InferenceService",
        "labels.team": "InferenceService",
        "labels.component": "OME",
        "restartPolicy": "default",
        "autoscaler.class": "OME",
    }
    assert {path: layers.get(path) for path in expected} == expected
    pod = deployment(traced)["spec"]["template"]["spec"]
    values = {path: value for path, (value, _) in traced.provenance["engine"].items()}
    assert values[f"{runner}.args[0]"] == pod["containers"][0]["args"][0] == "--n=chat"


def test_provenance_of_a_leader() -> None:
    config = {
        "nodeSelector": {"zone": "a"},
        "leader": {"runner": RUNNER},
        "worker": {"runner": RUNNER},
    }
    rendered = plan_of(
        runtime(config),
        service(deploymentMode="RawDeployment", engine={"nodeSelector": {"disk": "ssd"}}),
        provenance=True,
    )
    layers = {path: layer for path, (_, layer) in rendered.provenance["engine"].items()}
    assert layers["leader.containers[ome-container].image"] == "ClusterServingRuntime/rt"
    assert layers["leader.nodeSelector.zone"] == "ClusterServingRuntime/rt"
    assert layers["leader.nodeSelector.disk"] == "InferenceService"


def test_the_plan_serialises() -> None:
    data = plan_of(*full_input()).as_json()
    assert json.loads(json.dumps(data)) == data
    assert set(data) == {"service", "actions", "conditions", "decision", "autoscalers"}
    refused = plan_of(service()).as_json()
    assert refused["actions"]["engine"]["action"] == "Hold"
    assert len(refused["events"][0]["digest"]) == 16


def classed(name: str, memory: str) -> Any:
    spec = {"discovery": {"nodeSelector": {"gpu": name}}, "capabilities": {"memoryGB": memory}}
    return obj("AcceleratorClass", name, spec)


LISTED = runtime(acceleratorRequirements={"acceleratorClasses": ["gone", "big", "small", "big"]})


@pytest.mark.parametrize(
    ("spec", "chosen"),
    [
        ({"acceleratorSelector": {"policy": "BestFit", "constraints": {"minMemory": 20}}}, "small"),
        ({"acceleratorSelector": {"policy": "MostCapable"}}, "big"),
        (
            {
                "acceleratorSelector": {"policy": "MostCapable"},
                "engine": {"acceleratorOverride": {"acceleratorClass": "small"}},
            },
            "small",
        ),
        (
            {
                "acceleratorSelector": {"policy": "MostCapable", "acceleratorClass": "big"},
                "engine": {"acceleratorOverride": {"policy": "BestFit"}},
            },
            "big",
        ),
    ],
)
def test_a_policy_picks_from_the_runtimes_list(spec: Json, chosen: str) -> None:
    rendered = plan_of(LISTED, classed("big", "80Gi"), classed("small", "24Gi"), service(**spec))
    assert deployment(rendered)["spec"]["template"]["spec"]["nodeSelector"] == {"gpu": chosen}


def test_a_policy_that_leaves_no_class_says_why() -> None:
    asked = {"policy": "BestFit", "constraints": {"minMemory": 100}}
    rendered = plan_of(LISTED, classed("big", "80Gi"), service(acceleratorSelector=asked))
    assert "nodeSelector" not in deployment(rendered)["spec"]["template"]["spec"]
    assert [str(warning) for warning in rendered.warnings] == [
        "InferenceService/demo/chat: spec.acceleratorSelector.policy: policy BestFit leaves no accelerator "
        "class for the engine: gone doesn't exist, big fails minMemory, small doesn't exist; relax the "
        "constraints, or list another class in the runtime"
    ]


def test_a_misspelt_class_key_is_said() -> None:
    entry = {**ENTRY, "acceleratorConfig": {"Big": {"runtimeArgsOverride": ["--x"]}}}
    rt = runtime(
        supportedModelFormats=[entry], acceleratorRequirements={"acceleratorClasses": ["big"]}
    )
    asked = service(model={"name": "m"}, acceleratorSelector={"acceleratorClass": "big"})
    rendered = plan_of(rt, model(), classed("big", "80Gi"), asked)
    assert "args" not in container(rendered)
    assert [warning.message for warning in rendered.warnings] == [
        'acceleratorConfig of runtime rt has no key "big": the settings under "Big" are not applied'
    ]


def test_a_size_that_no_flag_takes_is_said() -> None:
    sizes = {"tensorParallelismOverride": {"tensorParallelSize": 4, "pipelineParallelSize": 1}}
    entry = {**ENTRY, "acceleratorConfig": {"big": sizes}}

    def warnings(*args: str) -> list[str]:
        rt = runtime(
            {"runner": {**RUNNER, "args": list(args)}},
            supportedModelFormats=[entry],
            acceleratorRequirements={"acceleratorClasses": ["big"]},
        )
        asked = service(model={"name": "m"}, acceleratorSelector={"acceleratorClass": "big"})
        rendered = plan_of(rt, model(), classed("big", "80Gi"), asked)
        return [str(warning) for warning in rendered.warnings]

    assert warnings("--tp=1") == []
    assert warnings("--port=1") == [
        "InferenceService/demo/chat: spec.engine.runner.args: the engine doesn't get the settings of class big: "
        "tensorParallelSize 4: there is none of --tp-size, --tp, --tensor-parallel-size in its arguments; "
        "write the flags in the runtime's args, as a list, for the class to set them"
    ]


def test_provenance_of_a_listed_container_inherited_selectors_and_legacy_annotations() -> None:
    base = runtime(name="base", disabled=True, nodeSelector={"pool": "base"}, schedulerName="own")
    listed = {"runner": RUNNER, "containers": [{"name": "ome-container", "image": "listed"}]}
    rt = runtime(listed, disabled=False, metadata={"annotations": {"ome.io/inherit-from": "base"}})
    asked = service(metadata={"annotations": {"ome.io/targetUtilizationPercentage": "55"}})
    rendered = plan_of(base, rt, asked, provenance=True)
    layers = {path: layer for path, (_, layer) in rendered.provenance["engine"].items()}
    assert layers["containers[ome-container].image"] == "ClusterServingRuntime/rt"
    assert layers["nodeSelector.pool"] == "ClusterServingRuntime/base"
    assert layers["schedulerName"] == "ClusterServingRuntime/base"
    assert layers["autoscaler.class"] == "InferenceService"


def test_an_annotation_tells_the_engines_version() -> None:
    seen: list[str] = []

    def detect(container: Any) -> None:
        seen.append(container.version)

    plugin = types.SimpleNamespace(
        ome_describe=hookimpl(lambda: EngineInfo("e", CONTRACT, "e")), ome_detect=hookimpl(detect)
    )
    engines = Engines([register(plugin, distribution="ome-engine-e", version="1")])
    version = {"runtime.ome.io/engine-version": "0.5.23"}
    plan_of(runtime(), service(metadata={"annotations": version}), engines=engines)
    assert set(seen) == {"0.5.23"}
