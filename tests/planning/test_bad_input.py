"""What users get wrong, and the exact words they get for it."""

from __future__ import annotations

from typing import Any

import pytest

from ome.api import ApiObject, InferenceService, InvalidObject
from ome.engines.engines import Engines
from ome.planning.names import component_name
from ome.planning.plan import Apply, Hold, Remove
from ome.planning.planner import plan
from ome.planning.podchecks import check_pod
from ome.snapshot import Snapshot
from ome.testing.builders import container, deployment, model, plan_of, runtime, service

Json = dict[str, Any]


def runner(**fields: Any) -> Json:
    return {"runner": {"name": "ome-container", "image": "engine:v1", **fields}}


def refusal(*objects: ApiObject) -> str:
    rendered = plan_of(*objects)
    assert isinstance(rendered.actions["engine"], Hold)
    assert isinstance(rendered.actions["ingress"], Hold)
    assert not list(rendered.objects())
    assert [event.type for event in rendered.events] == ["Warning"]
    return str(rendered.actions["engine"].problems[0])


POD = "InferenceService/demo/chat: engine pod: "
CHAT = "InferenceService/demo/chat: "


@pytest.mark.parametrize(
    ("engine_config", "engine", "message"),
    [
        pytest.param(
            {},
            {},
            CHAT
            + "spec.engine.runner: no containers found in pod spec and no runner spec provided; "
            "give the runtime's engineConfig or the service's engine a runner",
            id="no runner and no container",
        ),
        pytest.param(
            {"runner": {"name": "ome-container"}},
            {},
            POD
            + 'containers[ome-container].image: container "ome-container" has no image; set it in '
            "the runtime's or the service's runner",
            id="no image",
        ),
        pytest.param(
            {**runner(), "volumes": [{"name": "v", "emptyDir": {"medium": "Memory"}}]},
            {"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]},
            POD
            + 'volumes[v]: volume "v" has 2 sources after the merge: ClusterServingRuntime/rt sets '
            "volumes[v].emptyDir, InferenceService/demo/chat sets volumes[v].hostPath; to switch, "
            "InferenceService/demo/chat lists what stays: $retainKeys: [name, hostPath] in volumes[v]",
            id="a volume with two sources after merge",
        ),
        pytest.param(
            runner(volumeMounts=[{"name": "v", "mountPath": "/x"}]),
            {},
            POD
            + 'containers[ome-container].volumeMounts[/x]: mount /x names volume "v", which the pod '
            'doesn\'t have; add a volume "v"',
            id="a mount without a volume",
        ),
        pytest.param(
            {
                **runner(
                    volumeMounts=[
                        {"name": "a", "mountPath": "/x"},
                        {"name": "b", "mountPath": "/x"},
                    ]
                ),
                "volumes": [{"name": "a", "emptyDir": {}}, {"name": "b", "emptyDir": {}}],
            },
            {},
            POD
            + 'containers[ome-container].volumeMounts[/x]: volumes "a" and "b" are both mounted at '
            "/x; mount one of them elsewhere",
            id="two mounts on one path",
        ),
        pytest.param(
            runner(args=["--team={{.Labels.a-b}}"]),
            {},
            CHAT
            + "engine container ome-container: args[0]: malformed placeholder {{.Labels.a-b}} at "
            'character 8: the field form takes letters, digits and "_", not "-"; write '
            "{{index .Labels `a-b`}}",
            id="a dash in the field form",
        ),
        pytest.param(
            runner(env=[{"name": "A", "value": "{{.Name"}]),
            {},
            CHAT + "engine container ome-container: env[0].value: malformed placeholder {{.Name at "
            "character 1: it has no closing }}; close it with }}",
            id="an unclosed placeholder",
        ),
        pytest.param(
            runner(ports=[{"containerPort": 8080, "name": "http"}]),
            {"runner": {"ports": [{"containerPort": 9090, "name": "http"}]}},
            POD
            + 'containers[ome-container].ports[9090].name: ports 8080 and 9090 are both named "http"; '
            "ports merge by containerPort: name the new port differently",
            id="two ports of one name after merge",
        ),
        pytest.param(
            runner(ports=[{"containerPort": 80, "name": "a"}, {"containerPort": 80, "name": "b"}]),
            {},
            POD
            + "containers[ome-container].ports: port 80/TCP is declared twice (a and b); remove one "
            "of them",
            id="a port collision",
        ),
        pytest.param(
            {**runner(ports=[{"containerPort": 80}]), "hostNetwork": True},
            {"containers": [{"name": "side", "image": "s", "ports": [{"containerPort": 80}]}]},
            POD
            + "containers[ome-container].ports: port 80/TCP is declared twice (unnamed and unnamed); "
            "remove one of them",
            id="a port collision on the host's network",
        ),
        pytest.param(
            {**runner(), "minReplicas": 3},
            {"maxReplicas": 2},
            CHAT + "spec.engine.minReplicas: minReplicas must not exceed maxReplicas: 3 > 2",
            id="minReplicas above maxReplicas",
        ),
        pytest.param(
            {**runner(), "minAvailable": 1},
            {"maxUnavailable": 1},
            CHAT
            + "spec.engine: exactly one of minAvailable or maxUnavailable must be set; the merged "
            "engine has minAvailable and maxUnavailable: use the runtime's kind of bound",
            id="minAvailable with maxUnavailable",
        ),
        pytest.param(
            {**runner(), "minAvailable": "half"},
            {},
            CHAT
            + "spec.engine.minAvailable must be a non-negative integer or a percentage from 0% to "
            "100%",
            id="a bound that is none",
        ),
        pytest.param(
            runner(env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]),
            {"runner": {"env": [{"name": "A", "value": "x"}]}},
            POD
            + 'containers[ome-container].env[A]: variable "A" has both value and valueFrom after the '
            "merge: ClusterServingRuntime/rt sets containers[ome-container].env[A].valueFrom, "
            "InferenceService/demo/chat sets containers[ome-container].env[A].value; to switch, "
            "InferenceService/demo/chat lists what stays: $retainKeys: [name, value] in "
            "containers[ome-container].env[A]",
            id="a variable with value and source",
        ),
        pytest.param(
            runner(readinessProbe={"httpGet": {"port": 80}}),
            {"runner": {"readinessProbe": {"tcpSocket": {"port": 80}}}},
            POD
            + "containers[ome-container].readinessProbe: readinessProbe has 2 handlers after the "
            "merge: ClusterServingRuntime/rt sets containers[ome-container].readinessProbe.httpGet, "
            "InferenceService/demo/chat sets containers[ome-container].readinessProbe.tcpSocket; to switch, "
            "InferenceService/demo/chat lists what stays: $retainKeys: [tcpSocket] in "
            "containers[ome-container].readinessProbe",
            id="a probe with two handlers",
        ),
        pytest.param(
            runner(livenessProbe={"periodSeconds": 5}),
            {},
            POD
            + "containers[ome-container].livenessProbe: livenessProbe has no handler; add httpGet, "
            "tcpSocket, grpc or exec",
            id="a probe without a handler",
        ),
        pytest.param(
            runner(resources={"limits": {"memory": "8Gi"}}),
            {"runner": {"resources": {"requests": {"memory": "16Gi"}}}},
            POD
            + "containers[ome-container].resources.requests[memory]: memory requests 16Gi, above its "
            "limit 8Gi; raise the limit as well",
            id="a request above its limit",
        ),
        pytest.param(
            {**runner(), "autoscaler": {"class": "KEDA"}},
            {},
            CHAT
            + "spec.engine.autoscaler.keda.triggers: KEDA autoscaler requires at least one trigger; add a trigger",
            id="KEDA without triggers",
        ),
        pytest.param(
            {**runner(), "minReplicas": 0},
            {},
            CHAT
            + "spec.engine.minReplicas: InvalidScaleToZero: engine.minReplicas=0 requires KEDA "
            "autoscaling (set spec.engine.autoscaler.class=KEDA or the ome.io/autoscalerClass=keda "
            "annotation); Serverless mode no longer auto-promotes scale-to-zero; set a KEDA autoscaler with "
            "triggers in the service",
            id="zero replicas without KEDA",
        ),
        pytest.param(
            runner(),
            {"autoscalerPolicyRef": {"name": "p"}},
            CHAT + "spec.engine.autoscalerPolicyRef: AutoscalerPolicyFeatureDisabled: "
            'spec.engine.autoscalerPolicyRef references "p" but the AutoscalerPolicy feature is not '
            "enabled on this cluster; remove the ref or enable the feature",
            id="an autoscaler policy",
        ),
        pytest.param(
            {**runner(), "annotations": {"ome.io/deploymentMode": "VirtualDeployment"}},
            {},
            CHAT
            + "spec.engine.annotations[ome.io/deploymentMode]: deployment mode VirtualDeployment is "
            "not valid for the engine; use RawDeployment or OMENative",
            id="a mode that a component can't have",
        ),
        pytest.param(
            {"leader": runner(), "worker": runner()},
            {},
            CHAT
            + "spec.engine: the engine resolves to deployment mode OMENative, which this version of "
            "OME doesn't render; set spec.deploymentMode or the engine's annotation "
            "ome.io/deploymentMode to RawDeployment",
            id="a mode that isn't built",
        ),
    ],
)
def test_refused_components(engine_config: Json, engine: Json, message: str) -> None:
    assert refusal(runtime(engine_config), service(engine=engine)) == message


def test_a_quantity_that_is_none() -> None:
    side = {"name": "side", "image": "s", "resources": {"limits": {"memory": "lots"}}}
    with pytest.raises(InvalidObject) as caught:
        runtime({**runner(), "containers": [side]})
    path = "spec.engineConfig.containers[0].resources.limits.memory"
    assert str(caught.value) == f'ClusterServingRuntime/rt: {path}: "lots" is not a quantity'
    (problem,) = check_pod({"containers": [side]})
    assert str(problem) == (
        'containers[side].resources.limits[memory]: "lots" is not a quantity; write 2, 500m or 80Gi'
    )


def test_a_runtimes_runner_without_a_name() -> None:
    with pytest.raises(InvalidObject) as caught:
        runtime({"runner": {"image": "engine:v1"}})
    assert str(caught.value).startswith(
        "ClusterServingRuntime/rt: spec.engineConfig.runner.name: required"
    )


def test_a_services_runner_without_a_name_is_ome_container() -> None:
    rendered = plan_of(runtime({}), service(engine={"runner": {"image": "own:v1"}}))
    assert container(rendered)["image"] == "own:v1"


def test_every_problem_of_a_pod_is_reported() -> None:
    rendered = plan_of(
        runtime(
            runner(
                volumeMounts=[{"name": "a", "mountPath": "/x"}, {"name": "b", "mountPath": "/x"}]
            )
        ),
        service(),
    )
    codes = [problem.code for _, problem in rendered.refusals()]
    assert codes == ["VolumeMissing", "VolumeMissing", "MountPathTaken"]


def test_a_template_in_an_annotation_is_never_expanded_again() -> None:
    rendered = plan_of(
        runtime(runner(args=["{{.Annotations.owner}}"])),
        service(metadata={"annotations": {"owner": "{{.Name}}"}}),
    )
    assert container(rendered)["args"] == ["{{.Name}}"]
    annotations = deployment(rendered)["spec"]["template"]["metadata"]["annotations"]
    assert annotations["owner"] == "{{.Name}}"


def test_an_inline_chat_template_passes_through_with_a_warning() -> None:
    template = "{% for m in messages %}{{ m['content'] }}{% endfor %}"
    rendered = plan_of(runtime(runner(args=["--chat-template", template])), service())
    assert container(rendered)["args"][1] == template
    assert [str(warning) for warning in rendered.warnings] == [
        CHAT
        + "engine container ome-container: args[1]: template text that is no placeholder of OME's is "
        "passed on unchanged"
    ]


def test_a_63_character_service_name_with_a_decoder() -> None:
    name = "a" * 63
    rendered = plan_of(runtime(decoderConfig=runner()), service(name, decoder={}))
    names = {item["kind"] + "/" + item["metadata"]["name"] for item in rendered.objects()}
    decoder = component_name(name, "decoder")
    assert len(decoder) == 63
    assert decoder.endswith("-decoder")
    assert {f"Deployment/{decoder}", f"Service/{decoder}", f"Service/{name}"} <= names
    made = deployment(rendered, "decoder")
    assert made["spec"]["selector"] == {"matchLabels": {"app": decoder}}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("1chat", 'invalid InferenceService name "1chat", must match "[a-z]([-a-z0-9]*[a-z0-9])?"'),
        ("a.b", 'invalid InferenceService name "a.b", must match "[a-z]([-a-z0-9]*[a-z0-9])?"'),
        (
            "a" * 64,
            f'InferenceService name "{"a" * 64}" has 64 characters; Services and labels hold 63',
        ),
    ],
)
def test_service_names_that_nothing_can_be_named_after(name: str, message: str) -> None:
    rendered = plan_of(runtime(), service(name))
    ((_, problem),) = rendered.refusals()
    assert problem.message == message
    assert rendered.denial == message


def test_a_253_character_runtime_name() -> None:
    name = "r" * 253
    rendered = plan_of(runtime(name=name), service(runtime={"name": name}))
    template = deployment(rendered)["spec"]["template"]["metadata"]
    assert len(template["labels"]["serving-runtime"]) == 63
    assert template["labels"]["serving-runtime"].endswith("r" * 54)
    assert template["annotations"]["ome.io/serving-runtime"] == name


def test_a_claim_in_another_namespace() -> None:
    storage = {"storageUri": "pvc://other:weights/small"}
    text = refusal(runtime(), model(storage=storage), service(model={"name": "m"}))
    assert text == (
        CHAT + 'spec.model.name: ClusterBaseModel "m" references PVC in namespace "other", but '
        'InferenceService is in namespace "demo"; Kubernetes does not allow pods to mount PVCs from '
        'another namespace. Either move the InferenceService to namespace "other" or replicate the PVC '
        'into namespace "demo".'
    )


def test_a_volume_named_like_the_model() -> None:
    config = {**runner(), "volumes": [{"name": "m", "emptyDir": {}}]}
    text = refusal(runtime(config), model(), service(model={"name": "m"}))
    assert text == (
        CHAT
        + 'engine pod: volumes[m]: volume "m" has the name of the model\'s own volume; rename the '
        "volume"
    )


def test_a_missing_class_and_a_policy() -> None:
    listed = {"acceleratorClasses": ["a"]}
    rt = runtime(acceleratorRequirements=listed)
    text = refusal(rt, service(acceleratorSelector={"acceleratorClass": "gone"}))
    assert text == (
        CHAT
        + "spec.acceleratorSelector.acceleratorClass: Failed to get accelerator class for engine: "
        "accelerator class gone not found at cluster scope"
    )
    engine = {"acceleratorOverride": {"acceleratorClass": "also-gone"}}
    assert "spec.engine.acceleratorOverride.acceleratorClass: " in refusal(
        rt, service(engine=engine)
    )


def test_a_decoder_that_is_refused_holds_the_rest_and_leaves_the_engine() -> None:
    rendered = plan_of(runtime(), service(decoder={}, router={}))
    kinds = {name: type(action) for name, action in rendered.actions.items()}
    assert kinds == {"engine": Apply, "decoder": Hold, "router": Hold, "ingress": Hold}
    assert len(list(rendered.refusals())) == 1


def test_undeclared_components_are_removed() -> None:
    rendered = plan_of(runtime(routerConfig=runner()), service())
    assert isinstance(rendered.actions["decoder"], Remove)
    assert isinstance(rendered.actions["router"], Remove)


def pod(**fields: Any) -> Json:
    container: Json = {"name": "c", "image": "i"}
    container.update({key: fields.pop(key) for key in list(fields) if key in CONTAINER})
    return {"containers": [container], **fields}


CONTAINER = ("name", "env", "ports", "livenessProbe", "readinessProbe", "resources")


@pytest.mark.parametrize(
    ("checked", "codes"),
    [
        (pod(), []),
        (pod(name="A b"), ["ContainerNameInvalid"]),
        (
            {"containers": [{"name": "c", "image": "i"}, {"name": "c", "image": "i"}]},
            ["ContainerNameTaken"],
        ),
        (pod(ports=[{"containerPort": 1, "name": "much-too-long-a-name"}]), ["PortNameInvalid"]),
        (pod(ports=[{"containerPort": 1, "name": "8"}]), ["PortNameInvalid"]),
        (pod(ports=[{"containerPort": 0}]), ["PortInvalid"]),
        (pod(ports=[{"containerPort": 70000}]), ["PortInvalid"]),
        (pod(ports=[{"containerPort": 1, "protocol": "FOO"}]), ["ProtocolInvalid"]),
        (pod(ports=[{"containerPort": 53}, {"containerPort": 53, "protocol": "UDP"}]), []),
        (pod(volumes=[{"name": "V_1"}]), ["VolumeNameInvalid"]),
        (pod(volumes=[{"name": "v"}, {"name": "v"}]), ["VolumeNameTaken"]),
        (pod(livenessProbe={"httpGet": None, "tcpSocket": {"port": 1}}), []),
        (
            pod(livenessProbe={"tcpSocket": {"port": 1}, "periodSeconds": -1}),
            ["ProbeNumberInvalid"],
        ),
        (
            pod(livenessProbe={"tcpSocket": {"port": 1}, "successThreshold": 5}),
            ["ProbeNumberInvalid"],
        ),
        (pod(readinessProbe={"tcpSocket": {"port": 1}, "successThreshold": 5}), []),
        (pod(env=[{"name": "A", "valueFrom": {}}]), ["EnvSourceInvalid"]),
        (
            pod(env=[{"name": "A", "valueFrom": {"fieldRef": {}, "secretKeyRef": {}}}]),
            ["EnvSourceInvalid"],
        ),
        (pod(env=[{"name": "A", "valueFrom": {"fieldRef": {}, "secretKeyRef": None}}]), []),
        (pod(resources={"limits": {"cpu": "-1"}}), ["QuantityInvalid"]),
        (pod(resources={"limits": {"nvidia.com/gpu": "1500m"}}), ["QuantityInvalid"]),
        (pod(resources={"limits": {"cpu": "1500m"}}), []),
    ],
)
def test_what_kubernetes_would_refuse_in_a_pod(checked: Json, codes: list[str]) -> None:
    assert [problem.code for problem in check_pod(checked)] == codes


@pytest.mark.parametrize(
    ("metadata", "engine", "message"),
    [
        (
            {"labels": {"a": "b c!"}},
            {},
            'engine: labels[a]: "b c!" is no label value; use at most 63 letters, digits, dashes, dots and '
            "underscores, or an annotation",
        ),
        (
            {},
            {"labels": {"a b": "x"}},
            'engine: labels[a b]: "a b" is no key of labels; write name or prefix/name',
        ),
        (
            {"annotations": {"-/x": "y"}},
            {},
            'engine: annotations[-/x]: "-/x" is no key of annotations; write name or prefix/name',
        ),
    ],
)
def test_labels_and_annotations_that_are_none(metadata: Json, engine: Json, message: str) -> None:
    assert refusal(runtime(), service(metadata=metadata, engine=engine)) == CHAT + message


@pytest.mark.parametrize(
    ("worker", "leader", "code"),
    [
        ({"size": -3}, True, "WorkerSizeMustBePositive"),
        ({"size": 0}, True, "WorkerSizeMustBePositive"),
        ({"size": 1}, False, "WorkerRequiresLeader"),
    ],
)
def test_workers(worker: Json, leader: bool, code: str) -> None:
    config = {
        **runner(),
        "worker": {**worker, **runner()},
        **({"leader": runner()} if leader else {}),
    }
    rendered = plan_of(runtime(config), service(deploymentMode="RawDeployment"))
    action = rendered.actions["engine"]
    assert isinstance(action, Hold)
    assert action.problems[0].code == code


@pytest.mark.parametrize(
    ("overlays", "code"),
    [
        ([{"name": ""}], "OverlayNameEmpty"),
        ([{"name": "m"}], "OverlayIsPrimary"),
        ([{"name": "a"}, {"name": "a"}], "OverlayDuplicate"),
        ([{"name": "a-b"}, {"name": "a_b"}], "OverlayEnvClash"),
    ],
)
def test_overlays_that_are_refused(overlays: list[Json], code: str) -> None:
    asked = service(model={"name": "m", "overlays": overlays})
    action = plan_of(runtime(), model(), model("a"), model("a-b"), asked).actions["engine"]
    assert isinstance(action, Hold)
    assert action.problems[0].code == code


@pytest.mark.parametrize(
    ("storage", "code"),
    [
        ({"storageUri": "pvc://"}, "StorageUriMalformed"),
        ({"storageUri": "pvc:///x"}, "StorageUriMalformed"),
        ({"storageUri": "pvc://demo:/x"}, "StorageUriMalformed"),
        ({"storageUri": "pvc://a:b:c/d"}, "StorageUriMalformed"),
        ({"storageUri": "pvc://Bad_Claim/x"}, "StorageUriMalformed"),
        ({"storageUri": "pvc://c/../x"}, "StorageUriMalformed"),
        ({"storageUri": "local://rel/p"}, "StoragePathInvalid"),
        ({"storageUri": "hf://a/b", "path": "/"}, "StoragePathInvalid"),
        ({"storageUri": "hf://a/b", "path": "/a/../b"}, "StoragePathInvalid"),
        ({"storageUri": "hf://a/b", "path": "/a:b"}, "StoragePathInvalid"),
    ],
)
def test_storage_that_can_not_be_mounted(storage: Json, code: str) -> None:
    action = plan_of(runtime(), model(storage=storage), service(model={"name": "m"})).actions[
        "engine"
    ]
    assert isinstance(action, Hold)
    assert action.problems[0].code == code


def test_a_model_that_does_not_say_where_its_weights_are() -> None:
    odd = model(storage={"storageUri": "PVC://c/x"})
    rendered = plan_of(runtime(), odd, service(model={"name": "m"}))
    assert [warning.code for warning in rendered.warnings] == ["ModelPathUnknown"]
    assert "env" not in container(rendered)
    local = model(storage={"storageUri": "local:///data/m"})
    made = container(plan_of(runtime(), local, service(model={"name": "m"})))
    assert made["env"] == [{"name": "MODEL_PATH", "value": "/data/m"}]


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (["w"], "fine-tuned weights (w) aren't rendered by this version of OME"),
        (["w", "x"], "stacked fine-tuned serving is not supported yet"),
    ],
)
def test_fine_tuned_weights(weights: list[str], message: str) -> None:
    asked = service(model={"name": "m", "fineTunedWeights": weights})
    action = plan_of(runtime(), model(), asked).actions["engine"]
    assert isinstance(action, Hold)
    assert action.problems[0].message == message


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        (
            {"revision": "cr-rt-00000000"},
            "spec.runtime.revision requires spec.runtime.autoSync=false; AutoSync=true would silently ignore "
            "the pin",
        ),
        (
            {"revision": "r-demo-rt-00000000", "autoSync": False},
            'spec.runtime.revision "r-demo-rt-00000000" does not match the expected naming convention for '
            'runtime "rt" (ClusterServingRuntime); expected the form cr-rt-<8 lowercase hex chars>',
        ),
    ],
)
def test_revisions_that_are_refused(reference: Json, message: str) -> None:
    action = plan_of(runtime(), service(runtime={"name": "rt", **reference})).actions["engine"]
    assert isinstance(action, Hold)
    assert action.problems[0].message == message


@pytest.mark.parametrize(
    ("config", "engine", "code"),
    [
        ({"autoscalerPolicyRef": {"name": "p"}}, {}, "RuntimePolicyRef"),
        (
            {},
            {"autoscaler": {"class": "HPA", "hpa": {"metrics": [{"type": "Resource"}]}}},
            "HPAMetricMalformed",
        ),
        (
            {},
            {"autoscaler": {"class": "HPA", "hpa": {"metrics": [{"type": "Odd"}]}}},
            "HPAMetricMalformed",
        ),
        ({}, {"autoscaler": {"class": "None"}, "minReplicas": 0}, "InvalidScaleToZero"),
        (
            {},
            {
                "autoscaler": {
                    "class": "KEDA",
                    "keda": {"triggers": [{"type": "x"}], "idleReplicaCount": 1},
                },
                "minReplicas": 1,
            },
            "KedaIdleBelowMin",
        ),
    ],
)
def test_autoscalers_that_are_refused(config: Json, engine: Json, code: str) -> None:
    action = plan_of(runtime({**runner(), **config}), service(engine=engine)).actions["engine"]
    assert isinstance(action, Hold)
    assert action.problems[0].code == code


def test_probe_profiles_are_said() -> None:
    engine = {"annotations": {"runtime.ome.io/probe-profile": "nope"}}
    rendered = plan_of(runtime(), service(engine=engine))
    assert [warning.message for warning in rendered.warnings] == ["unknown probe profile: nope"]


@pytest.mark.parametrize(
    ("engine_config", "missing"),
    [
        ({"runner": {"name": "ome-container"}}, 'container "ome-container" has no image'),
        ({}, "no containers found in pod spec and no runner spec provided"),
    ],
    ids=["no image", "no container"],
)
def test_a_preset_that_nobody_has_filled_in(engine_config: Json, missing: str) -> None:
    annotations = {"ome.io/engine": "sglang-pd"}
    named = runtime(engine_config, metadata={"annotations": annotations})
    item = service()
    assert isinstance(item, InferenceService)
    # As in a cluster, where the runtime is as it was stored.
    snapshot = Snapshot.of([named, item], presets=lambda _: None)
    rendered = plan(snapshot, item, Engines())
    names = 'ClusterServingRuntime/rt names the preset "sglang-pd" (ome.io/engine)'
    (problem,) = rendered.actions["engine"].problems  # type: ignore[union-attr]
    assert problem.message == f"{missing}: {names}, and nobody has filled it in"
    assert "apply it anew where the webhook serves" in problem.fix
    assert rendered.events[0].message == problem.message


def test_values_that_name_nothing_are_skipped_and_told() -> None:
    annotations = {"ome.io/deploymentMode": "Serverless"}
    odd = service(
        engine={"annotations": {"ome.io/deploymentMode": "rawdeployment"}},
        runtime={"name": "rt", "kind": "Runtime"},
        metadata={"annotations": annotations},
    )
    rendered = plan_of(runtime(), odd)
    assert isinstance(rendered.actions["engine"], Apply)
    modes = "use one of MultiNode, OMENative, RawDeployment, VirtualDeployment"
    assert [str(each) for each in rendered.warnings] == [
        f'{CHAT}metadata.annotations[ome.io/deploymentMode]: "Serverless" is no deployment mode and is '
        f"skipped; {modes}",
        f'{CHAT}spec.engine.annotations[ome.io/deploymentMode]: "rawdeployment" is no deployment mode and is '
        f"skipped; {modes}",
        f'{CHAT}spec.runtime.kind: "Runtime" is no kind of runtime; the name is looked for in the namespace '
        "first; use ClusterServingRuntime or ServingRuntime",
    ]
    assert not plan_of(runtime(), service()).warnings
