"""The status of a service: every condition, field and event, for what was planned and what runs."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from ome.api import InferenceService, ObjectRef, Problem
from ome.engines.engines import Engines
from ome.planning.live import Failure, Live, PodFacts, Scaler, Workload
from ome.planning.plan import Event, Plan
from ome.planning.planner import plan
from ome.planning.status import ServiceReport, report_service
from ome.planning.stored import conditions_by_type, settled_status
from ome.snapshot import Config, IngressConfig, Snapshot
from ome.testing.builders import ENTRY, model, plan_of, runtime, service

Json = dict[str, Any]

NOW = datetime(2026, 12, 2, 10, 0, 0, tzinfo=UTC)
AT = "2026-12-02T10:00:00Z"
BEFORE = "2026-12-01T08:00:00Z"
INGRESS = (
    "True",
    "IngressDisabled",
    "Ingress creation is disabled, using external service for access",
)
STARTS = ("Unknown", "Initializing", "engine component initializing")
ENOUGH = ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
TOO_FEW = ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
REFUSED = {"status": "True", "reason": "FailedCreate", "message": "quota"}
# What makes a runtime one that OME chooses.
CHOSEN = [{**ENTRY, "autoSelect": True}]
NO_RUNTIME = "runtime rt not found in namespace demo or at cluster scope"
GONE = ("False", "RuntimeNotFound", NO_RUNTIME)


def asked(status: Any = None, **spec: Any) -> InferenceService:
    metadata = {"generation": 4, **spec.pop("metadata", {})}
    made = service(metadata=metadata, **spec)
    assert isinstance(made, InferenceService)
    return with_status(made, status)


def with_status(target: InferenceService, status: Any) -> InferenceService:
    """The service with any status: what other controllers wrote need not be readable."""
    copied = target.model_copy()
    copied._raw = {**target.raw, "status": status}
    return copied


def workload(said: tuple[str, str, str] | None = ENOUGH, name: str = "engine") -> Workload:
    ref = ObjectRef("Deployment", "demo", f"chat-{name}")
    available = (
        None if said is None else dict(zip(("status", "reason", "message"), said, strict=True))
    )
    return Workload(name, ref, available=available)


def running(*workloads: Workload, pods: tuple[PodFacts, ...] = (), **scalers: Scaler) -> Live:
    return Live({each.component: each for each in workloads or (workload(),)}, pods, scalers)


def report(
    target: InferenceService, plan: Plan, live: Live | None = None, config: Config | None = None
) -> ServiceReport:
    return report_service(target, plan, live or Live(), config or Config(), NOW)


def conditions(found: ServiceReport) -> dict[str, tuple[str, str, str]]:
    listed = found.status["conditions"]
    assert [each["type"] for each in listed] == sorted(each["type"] for each in listed)
    return {
        each["type"]: (each["status"], each.get("reason", ""), each.get("message", ""))
        for each in listed
    }


def condition(kind: str, said: tuple[str, str, str], at: str = BEFORE) -> Json:
    status, reason, message = said
    found = {"type": kind, "status": status, "reason": reason, "message": message}
    return {**{key: value for key, value in found.items() if value}, "lastTransitionTime": at}


def held(said: tuple[str, str, str] = GONE) -> Json:
    return {"conditions": [condition("RuntimeReady", said)]}


def test_the_first_status() -> None:
    target = asked()
    found = report(target, plan_of(runtime(), target))
    assert found.events == ()
    assert found.status == {
        "observedGeneration": 4,
        "conditions": [
            condition("EngineReady", STARTS, AT),
            condition("IngressReady", INGRESS, AT),
            condition("Ready", STARTS, AT),
        ],
        "url": "http://chat.demo.svc.cluster.local:8080",
        "address": {"url": "http://chat.demo.svc.cluster.local:8080"},
        "components": {
            "engine": {
                "scaleTargetRef": {
                    "apiVersion": "apps/v1",
                    "kind": "Deployment",
                    "name": "chat-engine",
                },
                "autoscaler": {"class": "HPA", "managedBy": "ome", "specSource": "default"},
            }
        },
    }


def test_a_service_that_no_api_server_has_seen_is_of_no_generation() -> None:
    target = asked(metadata={"generation": None})
    assert "observedGeneration" not in report(target, plan_of(runtime(), target)).status


@pytest.mark.parametrize(
    ("live", "engine"),
    [
        (Live(), STARTS),
        (running(workload(None)), STARTS),
        (running(workload(("Odd", "r", "m"))), STARTS),
        (
            running(replace(workload(None), progressing={"status": "False", "reason": "FailedCreate", "message": "quota"})),
            ("Unknown", "FailedCreate", "quota"),
        ),
        (running(workload(ENOUGH)), ENOUGH),
        (running(workload(TOO_FEW)), TOO_FEW),
        (running(replace(workload(TOO_FEW), refused=REFUSED)), ("False", "FailedCreate", "quota")),
        (running(replace(workload(None), refused=REFUSED)), ("False", "FailedCreate", "quota")),
        (running(replace(workload(ENOUGH), refused=REFUSED)), ENOUGH),
        (running(workload(("Unknown", "", ""))), ("Unknown", "", "")),
    ],
)  # fmt: skip
def test_the_engine_is_as_ready_as_its_deployment_is_available(
    live: Live, engine: tuple[str, str, str]
) -> None:
    target = asked()
    ready = ("True", "", "") if engine[0] == "True" else engine
    assert conditions(report(target, plan_of(runtime(), target), live)) == {
        "EngineReady": engine,
        "IngressReady": INGRESS,
        "Ready": ready,
    }


def test_decoder_and_router_are_told_and_do_not_count() -> None:
    target = asked(decoder={}, router={})
    config = {"runner": {"name": "ome-container", "image": "x:1"}}
    plan = plan_of(runtime(decoderConfig=config, routerConfig=config), target)
    found = report(target, plan, running(workload(), workload(TOO_FEW, "decoder")))
    assert conditions(found) == {
        "DecoderReady": TOO_FEW,
        "EngineReady": ENOUGH,
        "IngressReady": INGRESS,
        "Ready": ("True", "", ""),
        "RouterReady": ("Unknown", "Initializing", "router component initializing"),
    }
    severities = {each["type"]: each.get("severity") for each in found.status["conditions"]}
    assert severities == {
        "DecoderReady": "Info",
        "EngineReady": None,
        "IngressReady": None,
        "Ready": None,
        "RouterReady": "Info",
    }
    assert sorted(found.status["components"]) == ["decoder", "engine", "router"]


def test_what_is_no_longer_declared_goes() -> None:
    old = {
        "conditions": [condition("DecoderReady", ENOUGH), condition("RouterReady", ENOUGH)],
        "components": {"decoder": {"url": "http://d"}, "engine": {"url": "http://e", "more": 1}},
    }
    target = asked(old)
    found = report(target, plan_of(runtime(), target))
    assert sorted(conditions(found)) == ["EngineReady", "IngressReady", "Ready"]
    assert sorted(found.status["components"]) == ["engine"]
    assert found.status["components"]["engine"]["url"] == "http://e"
    assert found.status["components"]["engine"]["more"] == 1
    gone = report(target, plan_of(target))
    assert sorted(gone.status["components"]) == ["engine"]
    assert "DecoderReady" not in conditions(gone)


def test_a_refusal_without_a_workload_is_false() -> None:
    target = asked()
    found = report(target, plan_of(target))
    assert conditions(found) == dict.fromkeys(
        ("EngineReady", "IngressReady", "Ready", "RuntimeReady"), GONE
    )
    assert found.status["observedGeneration"] == 4
    assert "url" not in found.status
    assert "components" not in found.status
    assert found.events == (Event("Warning", "RuntimeNotFound", NO_RUNTIME),)


def test_a_refusal_never_makes_a_serving_service_not_ready() -> None:
    target = asked()
    served = report(target, plan_of(runtime(), target), running())
    target = with_status(target, served.status)
    found = report(target, plan_of(target), running())
    assert conditions(found) == {
        "EngineReady": ENOUGH,
        "IngressReady": INGRESS,
        "Ready": ("True", "", ""),
        "RuntimeReady": GONE,
    }
    for field in ("url", "address", "components"):
        assert found.status[field] == served.status[field]
    assert [each.reason for each in found.events] == ["RuntimeNotFound"]


def test_a_workload_that_fails_while_refused_is_told() -> None:
    target = asked(
        {"conditions": [condition("Ready", ("True", "", "")), condition("IngressReady", INGRESS)]}
    )
    found = report(target, plan_of(target), running(workload(TOO_FEW)))
    assert conditions(found)["Ready"] == TOO_FEW
    assert [each.reason for each in found.events] == ["RuntimeNotFound", "InferenceServiceNotReady"]


def test_a_component_that_is_refused_after_others() -> None:
    target = asked(router={})
    broken = {"minReplicas": 5, "maxReplicas": 2, "runner": {"name": "r", "image": "x:1"}}
    plan = plan_of(runtime(routerConfig=broken), target)
    text = "minReplicas must not exceed maxReplicas: 5 > 2"
    refused = ("False", "ReplicaBounds", text)
    found = report(target, plan, running())
    assert conditions(found) == {
        "EngineReady": ENOUGH,
        "IngressReady": refused,
        "Ready": refused,
        "RouterReady": refused,
    }
    assert sorted(found.status["components"]) == ["engine"]


def test_a_long_refusal_is_cut_where_it_is_copied() -> None:
    names = [f"a-runtime-with-quite-a-long-name-{at:04}" for at in range(40)]
    target = asked(runtime=None, model={"name": "m"})
    plan = plan_of(model(), *(runtime(name=name, disabled=True) for name in names), target)
    found = conditions(report(target, plan))
    whole = found["RuntimeReady"][2]
    assert len(whole) > 1024
    assert found["EngineReady"][2] == found["Ready"][2] == f"{whole[:1024]} …"


def test_ingress_creation_on_is_not_ready_until_it_is_off() -> None:
    config = Config(ingress=IngressConfig(creation_disabled=False))
    target = asked(metadata={"labels": {"networking.knative.dev/visibility": "cluster-local"}})
    plan = plan_of(runtime(), target, config=config)
    text = "ingress creation is on, but this version of OME renders no Ingress or HTTPRoute"
    found = conditions(report(target, plan, running(), config))
    assert found["IngressReady"] == found["Ready"] == ("False", "IngressNotRendered", text)


@pytest.mark.parametrize(
    ("old", "plan", "expected"),
    [
        (None, plan_of(runtime(), service()), None),
        (None, plan_of(service()), GONE),
        (held(), plan_of(runtime(), service()), ("True", "RuntimeResolved", "")),
        (held(("True", "RuntimeResolved", "")), plan_of(runtime(), service()), ("True", "RuntimeResolved", "")),
        (held(), plan_of(runtime(), service(model={"name": "gone"})), GONE),
        (held(("True", "RuntimeResolved", "")), plan_of(service()), GONE),
    ],
)  # fmt: skip
def test_runtime_ready(old: Any, plan: Plan, expected: tuple[str, str, str] | None) -> None:
    found = report(asked(old), plan)
    assert conditions(found).get("RuntimeReady") == expected
    if expected is not None:
        (told,) = (each for each in found.status["conditions"] if each["type"] == "RuntimeReady")
        assert told["severity"] == "Info"


def test_drift_is_true_or_absent() -> None:
    drifted = condition("RuntimeDrifted", ("True", "RevisionMissing", "m"))
    target = asked({"conditions": [drifted]})
    plan = plan_of(runtime(), target)
    assert conditions(report(target, plan))["RuntimeDrifted"] == ("True", "RevisionMissing", "m")
    decided = replace(plan, conditions=plan.conditions[:1], status={"pinnedRevisionName": "r-1"})
    found = report(target, decided)
    assert "RuntimeDrifted" not in conditions(found)
    assert found.status["pinnedRevisionName"] == "r-1"


def test_a_write_that_failed_is_told_until_it_succeeds() -> None:
    target = asked()
    plan = plan_of(runtime(), target)
    failed = {"type": "WorkloadApplied", "status": "False", "reason": "Forbidden", "message": "no"}
    found = report(target, replace(plan, conditions=(*plan.conditions, failed)))
    assert conditions(found)["WorkloadApplied"] == ("False", "Forbidden", "no")
    over = report(with_status(target, found.status), plan)
    assert "WorkloadApplied" not in conditions(over)


def test_overlays() -> None:
    spec = {
        "model": {"name": "m", "overlays": [{"name": "lora-a"}, {"name": "gone"}, {"name": "off"}]}
    }
    target = asked(**spec)
    others = (runtime(), model(), model("lora-a"), model("off", disabled=True))
    plan = plan_of(*others, target)
    found = report(target, plan)
    told = ("False", "OverlaysSkipped", 'overlay "gone" not found; overlay "off" is disabled')
    mounted = {
        "name": "lora-a",
        "envVar": "OVERLAY_LORA_A_MODEL_PATH",
        "mountPath": "/opt/ml/model-overlays/lora-a",
        "distribution": "PerNode",
    }
    assert conditions(found)["OverlaysReady"] == told
    assert found.status["mountedOverlays"] == [mounted]
    assert plan.as_json()["overlays"] == {
        "mounted": [mounted],
        "skipped": ['overlay "gone" not found', 'overlay "off" is disabled'],
    }

    whole = report(target, plan_of(*others, model("gone"), model("off"), target))
    assert conditions(whole)["OverlaysReady"] == ("True", "AllOverlaysMounted", "")
    assert [each["name"] for each in whole.status["mountedOverlays"]] == ["lora-a", "gone", "off"]

    refused = report(with_status(target, found.status), plan_of(model(), target))
    assert conditions(refused)["OverlaysReady"] == told
    assert refused.status["mountedOverlays"] == [mounted]
    assert "OverlaysReady" not in conditions(report(target, plan_of(model(), target)))

    bare = asked(found.status, model={"name": "m"})
    without = report(bare, plan_of(*others, bare))
    assert "OverlaysReady" not in conditions(without)
    assert "mountedOverlays" not in without.status


def test_an_overlay_without_a_path_is_listed_without_one() -> None:
    target = asked(model={"name": "m", "overlays": [{"name": "v"}]})
    vendor = model("v", storage={"storageUri": "vendor://acme/x"}, distribution="PerNode")
    found = report(target, plan_of(runtime(), model(), vendor, target))
    assert found.status["mountedOverlays"] == [
        {"name": "v", "envVar": "OVERLAY_V_MODEL_PATH", "distribution": "PerNode"}
    ]


def test_a_virtual_deployment_is_ready_and_says_nothing_of_what_ran() -> None:
    before = asked(model={"name": "m", "overlays": [{"name": "o"}]}, runtime=None, decoder={})
    config = {"runner": {"name": "ome-container", "image": "x:1"}}
    rt = runtime(decoderConfig=config, supportedModelFormats=CHOSEN)
    planned = plan_of(rt, model(), model("o"), before)
    old = report(before, planned, running(pods=(PodFacts("p", "engine", ready=True),))).status
    assert {"runtimeSelection", "mountedOverlays", "modelStatus"} <= old.keys()
    mode = {"annotations": {"ome.io/deploymentMode": "VirtualDeployment"}}
    target = asked({**old, "mine": 1}, metadata=mode, **before.raw["spec"])
    url = "https://chat.demo.svc.cluster.local"
    found = report(
        target, plan_of(target), config=Config(ingress=IngressConfig(url_scheme="https"))
    )
    text = "InferenceService is in VirtualDeployment mode"
    assert found.status == {
        "mine": 1,
        "observedGeneration": 4,
        "conditions": [condition("Ready", ("True", "VirtualDeployment", text), AT)],
        "url": url,
        "address": {"url": url},
        "components": {"engine": {"url": url}},
    }
    assert {each["type"]: each["status"] for each in old["conditions"]}["Ready"] == "True"


CONTROL = [
    "ome.io/accelerator-class",
    "ome.io/applied-hash",
    "ome.io/autoscalerClass",
    "ome.io/deploymentMode",
    "ome.io/extra-endpoints",
    "ome.io/ingress-disable-creation",
    "ome.io/load-balancer-ip",
    "ome.io/metrics",
    "ome.io/rollout-promote",
    "ome.io/runtime-sync",
    "ome.io/service-type",
    "ome.io/targetUtilizationPercentage",
]
SET = {"ome.io/autoscalerClass": "hpa", "ome.io/targetUtilizationPercentage": "70"}


@pytest.mark.parametrize("key", CONTROL)
def test_control_annotations_of_a_service_restart_no_pod(key: str) -> None:
    def template(**metadata: Any) -> Json:
        found = list(plan_of(runtime(), asked(metadata=metadata)).objects())
        (workload,) = (each for each in found if each["kind"] == "Deployment")
        made: Json = workload["spec"]["template"]
        return made

    value = SET.get(key, "false")
    assert template(annotations={key: value}) == template()
    assert template(annotations={"mine": "1"}) != template()


def test_a_virtual_deployment_tells_what_still_runs() -> None:
    mode = {"annotations": {"ome.io/deploymentMode": "VirtualDeployment"}}
    target = asked(metadata=mode)
    names = {"chat-router", "chat-engine"}
    snapshot = Snapshot.of(
        [target], live={ObjectRef("Deployment", "demo", name): "" for name in names}
    )
    planned = plan(snapshot, target, Engines([]))
    assert not planned.is_held
    assert list(planned.objects()) == []
    text = (
        "chat-engine, chat-router of an earlier deployment mode still runs; remove it with: kubectl delete "
        "deployments,services,hpa,pdb -n demo -l ome.io/inferenceservice=chat"
    )
    left = conditions(report(target, planned))["WorkloadLeft"]
    assert left == ("True", "DeploymentModeChanged", text)
    # Once it is gone, so is the condition.
    again = asked(report(target, planned).status, metadata=mode)
    assert "WorkloadLeft" not in conditions(report(again, plan_of(again)))


def test_what_others_have_altered_is_told() -> None:
    """An apply leaves what somebody adds, and what a renamed container has become."""
    target = asked()
    planned = plan_of(runtime(), target)
    assert "WorkloadAltered" not in conditions(report(target, planned, running(workload())))
    theirs = replace(workload(), altered=("containers[mine]", "containers[ome-container].args"))
    found = report(target, planned, running(theirs, workload(name="decoder")))
    text = (
        "Deployment chat-engine has in its pods what OME didn't put there: containers[mine], "
        "containers[ome-container].args; if nobody else needs it, remove it with: "
        "kubectl edit deployment chat-engine -n demo"
    )
    assert conditions(found)["WorkloadAltered"] == ("True", "ForeignFields", text)
    assert conditions(found)["Ready"][0] == "True"
    # While OME refuses the service, too.
    again = asked(found.status)
    held = report(again, plan_of(again), running(theirs))
    assert conditions(held)["WorkloadAltered"] == ("True", "ForeignFields", text)
    assert "WorkloadAltered" not in conditions(report(again, planned, running(workload())))
    many = replace(theirs, altered=tuple(f"volumes[{at}]" for at in range(11)))
    told = conditions(report(target, planned, running(many)))["WorkloadAltered"][2]
    assert ", volumes[7] and 3 more; if nobody" in told


def test_a_paused_deployment_is_told() -> None:
    target = asked()
    paused = replace(workload(), paused=True)
    found = conditions(report(target, plan_of(runtime(), target), running(paused)))
    text = (
        "Deployment chat-engine is paused: no change reaches its pods until somebody resumes it with: "
        "kubectl rollout resume deployment chat-engine -n demo"
    )
    assert found["WorkloadAltered"] == ("True", "Paused", text)
    both = replace(paused, altered=("volumes[x]",))
    found = conditions(report(target, plan_of(runtime(), target), running(both)))
    assert found["WorkloadAltered"][1] == "Paused"
    assert "volumes[x]" in found["WorkloadAltered"][2]


def test_what_could_not_be_written_is_not_there() -> None:
    """A write that fails is told by the component; what is there stays as ready as it is."""
    problem = Problem("Forbidden", "services is forbidden: exceeded quota")
    target = asked()
    planned = plan_of(runtime(), target)
    nothing = report(
        target, planned.held_back(dict.fromkeys(planned.actions, problem)), Live(front=False)
    )
    refused = ("False", "Forbidden", problem.message)
    assert conditions(nothing) == {
        "EngineReady": refused,
        "IngressReady": refused,
        "Ready": refused,
    }
    assert not {"url", "address"} & nothing.status.keys()
    # The front of somebody else isn't ours.
    live = running()
    held = planned.held_back({"ingress": problem})
    foreign = report(target, held, replace(live, front=False))
    assert conditions(foreign)["IngressReady"] == conditions(foreign)["Ready"] == refused
    assert not {"url", "address"} & foreign.status.keys()
    # It was served, and still is.
    served = asked(report(target, planned, live).status)
    again = report(served, plan_of(runtime(), served).held_back({"ingress": problem}), live)
    assert conditions(again)["IngressReady"][0] == conditions(again)["Ready"][0] == "True"
    assert again.status["url"] == served.raw["status"]["url"]
    # Until the front is gone.
    gone = report(served, held, replace(live, front=False))
    assert conditions(gone)["IngressReady"] == refused
    assert not {"url", "address"} & gone.status.keys()


def test_pods_that_are_not_known_say_nothing_of_the_model() -> None:
    target = asked(model={"name": "m"})
    planned = plan_of(runtime(), model(), target)
    live = running(pods=(PodFacts("p", "engine", ready=True),))
    before = report(target, planned, live).status["modelStatus"]
    assert before["transitionStatus"] == "UpToDate"
    after = report(asked({"modelStatus": before}), planned, replace(live, pods=None)).status
    assert "modelStatus" not in after
    known = asked({"modelStatus": before}, model={"name": "m"})
    assert report(known, planned, replace(live, pods=None)).status["modelStatus"] == before


def test_a_cluster_local_service_has_no_address() -> None:
    labels = {"networking.knative.dev/visibility": "cluster-local"}
    target = asked(
        {"url": "http://old", "address": {"url": "http://old"}}, metadata={"labels": labels}
    )
    found = report(target, plan_of(runtime(), target), running())
    assert "url" not in found.status
    assert "address" not in found.status
    assert conditions(found)["Ready"] == ("True", "", "")


def test_addresses_follow_port_scheme_and_template() -> None:
    engine = {
        "runner": {"name": "ome-container", "image": "x:1", "ports": [{"containerPort": 30000}]}
    }
    target = asked()
    ingress = IngressConfig(
        domain="example.com",
        domain_template="{{ .Name }}-{{ .Namespace }}.{{ .IngressDomain }}",
        url_scheme="https",
    )
    config = Config(ingress=ingress)
    plan = plan_of(runtime(engine), target, config=config)
    waiting = report(target, plan, running(workload(TOO_FEW)), config)
    assert waiting.status["url"] == "https://chat.demo.svc.cluster.local:30000"
    assert "url" not in waiting.status["components"]["engine"]
    ready = report(target, plan, running(), config)
    assert ready.status["components"]["engine"]["url"] == "https://chat-engine-demo.example.com"
    again = report(with_status(target, ready.status), plan, running(workload(TOO_FEW)), config)
    assert again.status["components"]["engine"]["url"] == "https://chat-engine-demo.example.com"


HPA = Scaler("engine", ObjectRef("HorizontalPodAutoscaler", "demo", "chat-engine"), 2, 3, BEFORE)
TRIGGER = {"triggers": [{"type": "cron", "metadata": {}}]}


@pytest.mark.parametrize(
    ("own", "config", "annotations", "expected"),
    [
        (None, None, {}, ("HPA", "ome", "default")),
        ({"class": "HPA"}, {"class": "None"}, {}, ("HPA", "ome", "isvc")),
        ({"class": "KEDA", "keda": TRIGGER}, None, {}, ("KEDA", "ome", "isvc")),
        (None, {"class": "KEDA", "keda": TRIGGER}, {}, ("KEDA", "ome", "runtime")),
        (None, None, {"ome.io/targetUtilizationPercentage": "60"}, ("HPA", "ome", "legacy")),
        (None, None, {"ome.io/autoscalerClass": "external"}, ("External", "external", "legacy")),
        ({"class": "External"}, None, {}, ("External", "external", "isvc")),
        (None, {"class": "None"}, {}, ("None", "none", "runtime")),
    ],
)  # fmt: skip
def test_autoscalers(
    own: Any, config: Any, annotations: Json, expected: tuple[str, str, str]
) -> None:
    base = {"runner": {"name": "ome-container", "image": "x:1"}}
    engine = {"autoscaler": own} if own else {}
    target = asked(engine=engine, metadata={"annotations": annotations})
    rt = runtime({**base, "autoscaler": config} if config else base)
    plan = plan_of(rt, target)
    decided = dict(zip(("class", "managedBy", "specSource"), expected, strict=True))
    counts = {"currentReplicas": 2, "desiredReplicas": 3, "lastScaleTime": BEFORE}
    wanted = {**decided, **counts} if expected[1] == "ome" else decided
    assert plan.autoscalers == {"engine": {"class": expected[0], "specSource": expected[2]}}
    found = report(target, plan, running(engine=HPA))
    assert found.status["components"]["engine"]["autoscaler"] == wanted
    zero = report(target, plan, running(engine=Scaler("engine", HPA.ref, 0, None)))
    assert zero.status["components"]["engine"]["autoscaler"] == decided


def test_a_held_component_keeps_its_autoscaler_and_tells_its_counts() -> None:
    old = {
        "class": "HPA",
        "managedBy": "ome",
        "specSource": "isvc",
        "currentReplicas": 1,
        "conditions": [],
    }
    target = asked({"components": {"engine": {"autoscaler": old}}})
    found = report(target, plan_of(target), running(engine=HPA)).status["components"]["engine"]
    assert found == {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "chat-engine"},
        "url": "http://chat-engine.demo.svc.cluster.local",
        "autoscaler": {
            "class": "HPA",
            "managedBy": "ome",
            "specSource": "isvc",
            "currentReplicas": 2,
            "desiredReplicas": 3,
            "lastScaleTime": BEFORE,
        },
    }


def pod(name: str, failure: Failure | None = None, **more: Any) -> PodFacts:
    return PodFacts(name, more.pop("component", "engine"), failure=failure, **more)


CRASH = Failure("ome-container", "Error", "boom", 2, BEFORE)
PENDING = {
    "transitionStatus": "InProgress",
    "modelRevisionStates": {"activeModelState": "Pending", "targetModelState": "Pending"},
}


def failed(info: Json, active: str = "Pending", copies: tuple[int, int] = (1, 0)) -> Json:
    return {
        "transitionStatus": "BlockedByFailedLoad",
        "modelRevisionStates": {"activeModelState": active, "targetModelState": "FailedToLoad"},
        "modelCopies": {"failedCopies": copies[0], "totalCopies": copies[1]},
        "lastFailureInfo": info,
    }


def loaded(copies: tuple[int, int]) -> Json:
    return {
        "transitionStatus": "UpToDate",
        "modelRevisionStates": {"activeModelState": "Loaded", "targetModelState": "Loaded"},
        "modelCopies": {"failedCopies": copies[0], "totalCopies": copies[1]},
    }


def info(name: str = "a", message: str = "boom", code: int | None = 2, at: str = BEFORE) -> Json:
    found: Json = {
        "location": name,
        "reason": "RuntimeUnhealthy" if code is None else "ModelLoadFailed",
        "message": message,
    }
    found |= {} if code is None else {"exitCode": code}
    return found | ({"time": at} if at else {})


def with_info(told: Json) -> Json:
    return {**PENDING, "lastFailureInfo": told}


@pytest.mark.parametrize(
    ("available", "pods", "expected"),
    [
        (TOO_FEW, (), PENDING),
        (ENOUGH, (), PENDING),
        (TOO_FEW, (pod("a"),), PENDING),
        (TOO_FEW, (pod("a", CRASH, component="router"),), PENDING),
        (TOO_FEW, (pod("a", CRASH, terminating=True), pod("b", CRASH, phase="Failed")), PENDING),
        (TOO_FEW, (pod("b", replace(CRASH, message="other")), pod("a", CRASH)), failed(info(), copies=(2, 0))),
        (TOO_FEW, (pod("a", replace(CRASH, time="")),), failed(info(at=""))),
        (TOO_FEW, (pod("a", replace(CRASH, message="")),), failed(info(message="Error"))),
        (TOO_FEW, (pod("a", replace(CRASH, message="", reason="OOMKilled")),), failed(info(message="OOMKilled"))),
        (TOO_FEW, (pod("a", replace(CRASH, reason="OOMKilled")),), failed(info(message="OOMKilled: boom"))),
        (TOO_FEW, (pod("a", CRASH), pod("b", ready=True)), failed(info(), "Loaded", (1, 1))),
        (TOO_FEW, (pod("a", replace(CRASH, is_past=True)),), with_info(info())),
        (TOO_FEW, (pod("a", Failure("c", "ImagePullBackOff", "no image")),), with_info(info(message="ImagePullBackOff: no image", code=None, at=""))),
        (ENOUGH, (pod("a", ready=True), pod("b", ready=True), pod("c")), loaded((0, 2))),
        (ENOUGH, (pod("a", ready=True, revision="1"), pod("b", CRASH, revision="1")), loaded((1, 1))),
        (ENOUGH, (pod("a", ready=True, revision="1"), pod("b", CRASH, revision="2")), failed(info("b"), "Loaded", (1, 1))),
        (ENOUGH, (pod("b", CRASH, revision="2"),), loaded((1, 0))),
        (ENOUGH, (pod("a", CRASH, ready=True),), loaded((0, 1))),
    ],
)  # fmt: skip
def test_model_status(
    available: tuple[str, str, str], pods: tuple[PodFacts, ...], expected: Json
) -> None:
    target = asked(model={"name": "m"})
    plan = plan_of(runtime(), model(), target)
    found = report(target, plan, running(workload(available), pods=pods))
    assert found.status["modelStatus"] == expected


def test_without_a_model_there_is_no_model_status() -> None:
    target = asked({"modelStatus": PENDING})
    assert "modelStatus" not in report(target, plan_of(runtime(), target), running()).status


def test_the_choice_of_a_runtime_is_recorded_until_the_service_names_one() -> None:
    target = asked(runtime=None, model={"name": "m"})
    plan = plan_of(runtime(supportedModelFormats=CHOSEN), model(), target)
    found = report(target, plan)
    assert plan.decision is not None
    assert found.status["runtimeSelection"] == plan.decision["record"]
    assert found.status["runtimeSelection"]["name"] == "rt"
    refused = report(with_status(target, found.status), plan_of(runtime(), target))
    assert refused.status["runtimeSelection"] == plan.decision["record"]
    names = asked(found.status, model={"name": "m"})
    assert "runtimeSelection" not in report(names, plan_of(runtime(), model(), names)).status


def test_a_condition_is_dated_when_its_status_changes() -> None:
    old = {"conditions": [condition("EngineReady", ENOUGH), condition("Ready", STARTS)]}
    target = asked(old)
    found = report(target, plan_of(runtime(), target), running(workload(("True", "Other", "text"))))
    assert found.status["conditions"] == [
        condition("EngineReady", ("True", "Other", "text"), BEFORE),
        condition("IngressReady", INGRESS, AT),
        condition("Ready", ("True", "", ""), AT),
    ]


@pytest.mark.parametrize("at", ["", "yesterday", None])
def test_a_time_that_is_none_is_written_anew(at: Any) -> None:
    target = asked({"conditions": [{**condition("EngineReady", ENOUGH), "lastTransitionTime": at}]})
    found = report(target, plan_of(runtime(), target), running())
    assert found.status["conditions"][0] == condition("EngineReady", ENOUGH, AT)


@pytest.mark.parametrize(
    "now",
    [
        NOW,
        NOW.replace(tzinfo=None),
        NOW.replace(microsecond=999_999),
        datetime(2026, 12, 2, 15, 30, tzinfo=timezone(timedelta(hours=5, minutes=30))),
    ],
)
def test_moments_are_written_in_utc_to_the_second(now: datetime) -> None:
    target = asked()
    found = report_service(target, plan_of(runtime(), target), Live(), Config(), now)
    assert found.status["conditions"][0]["lastTransitionTime"] == AT


IS_READY = Event("Normal", "InferenceServiceReady", "InferenceService [chat] is Ready")
NOT_READY = Event(
    "Warning", "InferenceServiceNotReady", "InferenceService [chat] is no longer Ready"
)


@pytest.mark.parametrize(
    ("was", "live", "expected"),
    [
        (None, Live(), ()),
        (None, running(), (IS_READY,)),
        ("False", running(), (IS_READY,)),
        ("Unknown", running(workload(TOO_FEW)), ()),
        ("True", running(), ()),
        ("True", running(workload(TOO_FEW)), (NOT_READY,)),
        ("True", Live(), (NOT_READY,)),
    ],
)
def test_events_of_readiness(was: str | None, live: Live, expected: tuple[Event, ...]) -> None:
    target = asked({"conditions": [condition("Ready", (was, "", ""))]} if was else None)
    assert report(target, plan_of(runtime(), target), live).events == expected


def test_an_event_is_sent_once_for_as_long_as_it_stands() -> None:
    target = asked()
    plain = plan_of(runtime(), target)
    one, two = Event("Warning", "A", "a"), Event("Warning", "B", "b")
    first = report(target, replace(plain, events=(one, two, one)))
    assert first.events == (one, two)
    assert first.status["reportedEvents"] == sorted([one.digest, two.digest])
    target = with_status(target, first.status)
    assert report(target, replace(plain, events=(one, two))).events == ()
    over = report(target, replace(plain, events=(two,)))
    assert over.events == ()
    assert over.status["reportedEvents"] == [two.digest]
    again = report(with_status(target, over.status), replace(plain, events=(one, two)))
    assert again.events == (one,)
    none = report(target, plain)
    assert "reportedEvents" not in none.status


def test_of_two_conditions_with_one_type_the_first_counts() -> None:
    one, two = {"type": "A", "status": "True"}, {"type": "A", "status": "False"}
    assert conditions_by_type({"conditions": [None, {"type": 5}, one, two]}) == {"A": one}


def test_what_others_wrote_stays() -> None:
    theirs = {"theirs": {"a": [1]}, "annotations": {"k": "v"}, "rollout": {"groups": []}}
    foreign = condition("RolloutPlanDrift", ("False", "InSync", ""))
    target = asked({**theirs, "conditions": [foreign]})
    found = report(target, plan_of(runtime(), target))
    assert {key: found.status[key] for key in theirs} == theirs
    assert foreign in found.status["conditions"]


def test_what_the_schema_refuses_is_not_kept() -> None:
    info = {"time": "then", "exitCode": 2**40, "reason": "Odd", "message": "m", "location": 3}
    states = {"targetModelState": "Loaded"}
    status = {
        "modelStatus": {"lastFailureInfo": info, "modelRevisionStates": states},
        "components": {"engine": {"selectedAccelerator": {"reason": "no class"}, "url": "u"}},
        "observedGeneration": True,
    }
    assert settled_status(status) == {
        "modelStatus": {"lastFailureInfo": {"message": "m"}},
        "components": {"engine": {"url": "u"}},
    }


@pytest.mark.parametrize(
    ("odd", "kept"),
    [
        ({"url": 5, "observedGeneration": "x", "annotations": {"a": 1, "b": "c"}}, {"annotations": {"b": "c"}}),
        ({"traffic": [], "addresses": [3, {"url": "http://a"}]}, {"addresses": [{"url": "http://a"}]}),
        ({"conditions": {"a": 1}, "components": ["engine"], "reportedEvents": {"a": 1}}, {}),
        ({"conditions": [None, 1, "x", {}, {"type": 5, "status": "True"}, {"type": "Ready", "status": 1}]}, {}),
        ({"components": {"engine": None, "router": 3}, "reportedEvents": [1, None]}, {}),
        ({"components": {"engine": {"autoscaler": 3}}, "modelStatus": {"transitionStatus": "Odd"}}, {}),
        ({"pinnedRevisionName": None, "mountedOverlays": "x", "runtimeSelection": "x"}, {}),
        ("odd", {}),
        ([], {}),
        (5, {}),
    ],
)  # fmt: skip
def test_an_odd_status_is_written_anew(odd: Any, kept: Json) -> None:
    target = asked()
    plan = plan_of(runtime(), target)
    fresh = report(target, plan, running())
    found = report(with_status(target, odd), plan, running())
    assert found.status == {**fresh.status, **kept}
    assert found.events == fresh.events
