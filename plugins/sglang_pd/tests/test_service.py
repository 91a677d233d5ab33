"""A service on the preset: engine, decoder and router agree, and the released router starts with them.

So do the prefill-decode runtimes of OME's public catalog, which is no part of this package: `OME_CATALOG`
names it (an archive or a folder).
"""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sglang_router.router_args import RouterArgs

from ome.api import ApiObject
from ome.engines import Container, parse
from ome.engines.engines import Engines
from ome.planning.plan import Plan
from ome.planning.planner import plan
from ome.snapshot import Snapshot
from ome.sources import InstalledPresets, load, read_paths
from ome.testing.builders import container, deployment, model, obj, plan_of, service
from ome.testing.catalog import catalog_files, catalog_path, model_for, service_for

Json = dict[str, Any]
EXAMPLE = Path(__file__).parents[3] / "examples/llama-3-1-8b-pd"
OWN_PORTS = {"http_port": "8080", "bootstrap_port": "9000", "router_port": "8000"}
COMPONENTS = ("engine", "decoder", "router")


def runtime(spec: Json | None = None, **parameters: str) -> ApiObject:
    """A runtime with the preset."""
    keys = {f"engine.ome.io/{key.replace('_', '-')}": text for key, text in parameters.items()}
    return obj(
        "ClusterServingRuntime",
        "rt",
        spec or {},
        annotations={"ome.io/engine": "sglang-pd", **keys},
    )


def expanded(item: Json, labels: Mapping[str, str]) -> list[str]:
    """A container's argv as the kubelet starts it, in namespace `demo`."""
    env = {"NAMESPACE": "demo"}
    for each in item.get("env") or ():
        path = ((each.get("valueFrom") or {}).get("fieldRef") or {}).get("fieldPath", "")
        found = re.fullmatch(r"metadata\.labels\['(.*)'\]", path)
        env[each["name"]] = labels[found[1]] if found else each.get("value", "demo")
    words = [*item.get("command", ()), *item.get("args", ())]
    return [re.sub(r"\$\((\w+)\)", lambda m: env.get(m[1], m[0]), word) for word in words]


def router_args(words: list[str]) -> RouterArgs:
    """The arguments as the released router reads them; SystemExit when it refuses them."""
    parser = argparse.ArgumentParser()
    RouterArgs.add_cli_args(parser)
    return RouterArgs.from_cli_args(parser.parse_args(words))


@dataclass(frozen=True)
class Service:
    """A rendered service."""

    plan: Plan

    def container(self, component: str) -> Json:
        """The serving container of a component."""
        name = "router" if component == "router" else "ome-container"
        return container(self.plan, component, name)

    def template(self, component: str) -> Json:
        """The pod template of a component."""
        found: Json = deployment(self.plan, component)["spec"]["template"]
        return found

    def words(self, component: str) -> list[str]:
        """The argv of a component, expanded."""
        return expanded(self.container(component), self.template(component)["metadata"]["labels"])

    def router(self) -> RouterArgs:
        """What the released router reads in its arguments."""
        return router_args(self.words("router"))

    def value(self, component: str, flag: str) -> str:
        """What follows a flag in a component's argv."""
        words = self.words(component)
        return words[words.index(flag) + 1]


def render(engines: Engines, item: ApiObject, name: str = "chat", **spec: Any) -> Service:
    """A service that declares all three components, on a runtime."""
    parts = {name: {} for name in COMPONENTS}
    asked = service(name, **{"model": {"name": "m"}, **parts, **spec})
    return Service(plan_of(item, model(), asked, engines=engines))


def seen(item: Json) -> Container:
    """What a plugin sees of a container."""
    return Container(item["image"], tuple(item.get("command", ())), tuple(item.get("args", ())))


def example(engines: Engines) -> Service:
    presets = InstalledPresets(engines)
    loaded = load(read_paths([str(EXAMPLE)]), presets=presets)
    assert not loaded.warnings
    snapshot = Snapshot.of(loaded.objects, presets=presets)
    (asked,) = snapshot.services()
    rendered = plan(snapshot, asked, engines)
    assert [str(warning) for warning in rendered.warnings if not warning.is_note] == []
    return Service(rendered)


def ports_of(item: dict[str, Any]) -> dict[str, int]:
    return {port["name"]: port["containerPort"] for port in item["ports"]}


@pytest.mark.parametrize(
    ("parameters", "http", "bootstrap", "router"),
    [({}, 30000, 8998, 30080), (OWN_PORTS, 8080, 9000, 8000)],
    ids=["defaults", "own ports"],
)
def test_ports_agree_everywhere(
    engines: Engines, parameters: dict[str, str], http: int, bootstrap: int, router: int
) -> None:
    found = render(engines, runtime(**parameters))
    prefill, decode, front = (found.container(name) for name in COMPONENTS)
    assert ports_of(prefill) == {"http": http, "bootstrap": bootstrap}
    assert ports_of(decode) == {"http": http}
    assert ports_of(front) == {"http": router}
    assert [found.value(name, "--port") for name in ("engine", "decoder")] == [str(http)] * 2
    assert found.value("engine", "--disaggregation-bootstrap-port") == str(bootstrap)
    assert "--disaggregation-bootstrap-port" not in found.words("decoder")
    annotations = found.template("engine")["metadata"]["annotations"]
    assert annotations["sglang.ai/bootstrap-port"] == str(bootstrap)
    assert "sglang.ai/bootstrap-port" not in found.template("decoder")["metadata"]["annotations"]
    probed = {
        item[probe]["httpGet"]["port"]
        for item in (prefill, decode)
        for probe in ("readinessProbe", "livenessProbe")
    }
    assert probed == {http}
    assert front["readinessProbe"]["httpGet"] == {"path": "/readiness", "port": router}
    assert front["livenessProbe"]["httpGet"] == {"path": "/liveness", "port": router}
    (outer,) = [item for item in found.plan.objects() if item["metadata"]["name"] == "chat"]
    assert outer["spec"]["selector"]["component"] == "router"
    assert [port["port"] for port in outer["spec"]["ports"]] == [router]


@pytest.mark.parametrize(
    ("parameters", "http", "router"), [({}, 30000, 30080), (OWN_PORTS, 8080, 8000)]
)
def test_the_released_router_reads_its_arguments(
    engines: Engines, parameters: dict[str, str], http: int, router: int
) -> None:
    found = render(engines, runtime(**parameters))
    args = found.router()
    assert (args.host, args.port) == ("0.0.0.0", router)
    assert (args.pd_disaggregation, args.service_discovery) == (True, True)
    assert (args.service_discovery_namespace, args.service_discovery_port) == ("demo", http)
    assert args.bootstrap_port_annotation in found.template("engine")["metadata"]["annotations"]
    assert (args.selector, args.prefill_urls, args.decode_urls, args.worker_urls) == (
        {},
        [],
        [],
        [],
    )


@pytest.mark.parametrize("name", ["chat", "a" * 63])
def test_selectors_reach_exactly_the_pods_of_their_component(engines: Engines, name: str) -> None:
    found = render(engines, runtime(), name=name)
    args = found.router()
    labels = {each: found.template(each)["metadata"]["labels"] for each in COMPONENTS}
    for selector, component in (
        (args.prefill_selector, "engine"),
        (args.decode_selector, "decoder"),
    ):
        assert set(selector) == {"component", "ome.io/inferenceservice"}
        reached = [each for each in COMPONENTS if selector.items() <= labels[each].items()]
        assert reached == [component]


def test_the_router_may_read_the_pods_of_its_namespace(engines: Engines) -> None:
    found = render(engines, runtime())
    objects = {item["kind"]: item for item in found.plan.objects() if item["kind"] not in ("Deployment", "Service")}  # fmt: skip
    account = found.template("router")["spec"]["serviceAccountName"]
    assert objects["ServiceAccount"]["metadata"]["name"] == account
    assert objects["Role"]["rules"] == [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}
    ]
    (subject,) = objects["RoleBinding"]["subjects"]
    assert subject == {"kind": "ServiceAccount", "name": account, "namespace": "demo"}
    assert objects["RoleBinding"]["roleRef"]["name"] == objects["Role"]["metadata"]["name"]


@pytest.mark.parametrize(
    "image", ["lmsysorg/sglang:v0.5.23", "lmsysorg/sglang:v0.5.5", "lmsysorg/sglang:latest"]
)
def test_the_servers_flags_are_those_of_sglang(engines: Engines, image: str) -> None:
    found = render(engines, runtime(image=image))
    for component in ("engine", "decoder"):
        item = found.container(component)
        recognised = engines.recognise(seen(item))
        assert recognised.engine is not None
        assert recognised.engine.name == "sglang"
        groups = parse(item["command"][3:], recognised.dialect)
        assert [group.words for group in groups if not group.key] == []
        assert {
            group.key for group in groups if recognised.dialect.arity_of(group.key) is None
        } == set()
    codes = [warning.code for warning in found.plan.warnings if not warning.is_note]
    assert codes == ["NotDeclared"]  # the runtime of this test lists no models


def test_the_runtimes_own_fields_win(engines: Engines) -> None:
    def runner(name: str, **fields: Any) -> dict[str, Any]:
        return {"runner": {"name": name, **fields}}

    found = render(
        engines,
        runtime(
            {
                "engineConfig": runner(
                    "ome-container",
                    command=[
                        "python3",
                        "-m",
                        "sglang.launch_server",
                        "--host=0.0.0.0",
                        "--port=30000",
                    ],
                    ports=[{"containerPort": 29000, "name": "metrics"}],
                    readinessProbe={"failureThreshold": 9},
                ),
                "decoderConfig": runner("ome-container", args=["--tp-size=2"]),
                "routerConfig": {**runner("router", args=["--policy=random"]), "minReplicas": 2},
            }
        ),
    )
    prefill, decode, front = (found.container(name) for name in COMPONENTS)
    assert prefill["command"][3:] == ["--host=0.0.0.0", "--port=30000"]
    assert ports_of(prefill) == {"http": 30000, "bootstrap": 8998, "metrics": 29000}
    assert prefill["readinessProbe"]["failureThreshold"] == 9
    assert prefill["readinessProbe"]["periodSeconds"] == 30
    assert decode["command"][-1] == "nixl"
    assert decode["args"] == ["--tp-size=2"]
    assert front["args"] == ["--policy=random"]


def test_one_flag_of_the_preset_is_edited_by_an_operation(engines: Engines) -> None:
    def edits(name: str, *operations: Any) -> dict[str, Any]:
        return {"runner": {"name": name, "argsPatch": list(operations)}}

    flag = "--disaggregation-transfer-backend"
    found = render(
        engines,
        runtime(
            {
                "engineConfig": edits("ome-container", {"set": {"name": flag, "value": "mori"}}),
                "routerConfig": edits("router", {"set": {"name": "--policy", "value": "random"}}),
            }
        ),
    )
    assert found.value("engine", flag) == "mori"
    assert found.value("decoder", flag) == "nixl"
    assert found.router().policy == "random"
    assert found.router().service_discovery_port == 30000


def test_only_what_the_service_declares_is_rendered(engines: Engines) -> None:
    found = render(engines, runtime(), decoder=None, router=None)
    kinds = [(item["kind"], item["metadata"]["name"]) for item in found.plan.objects() if item["kind"] == "Deployment"]  # fmt: skip
    assert kinds == [("Deployment", "chat-engine")]
    refused = render(engines, runtime(), engine=None)
    assert {problem.code for _, problem in refused.plan.refusals()} == {"EngineRequired"}


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"http_port": "http"},
            'parameter http-port of preset sglang-pd: "http" is no port, a number from 1 to 65535',
        ),
        (
            {"router_port": "70000"},
            'parameter router-port of preset sglang-pd: "70000" is no port, a number from 1 to 65535',
        ),
        (
            {"http_port": "8998"},
            "preset sglang-pd: http-port and bootstrap-port are both 8998, and both are the engine's",
        ),
        (
            {"backend": "nixl"},
            'preset sglang-pd has no parameter "backend" (known: bootstrap-port, http-port, image, '
            "router-image, router-port, transfer-backend)",
        ),
    ],
)
def test_parameters_that_are_refused(
    engines: Engines, parameters: dict[str, str], message: str
) -> None:
    found = render(engines, runtime(**parameters))
    assert {problem.message for _, problem in found.plan.refusals()} == {message}


@pytest.mark.parametrize("backend", ["mooncake", "a: b # c", "'x'", '"', "${X}", "é", "- x", "yes"])
def test_texts_reach_the_command_as_they_are(engines: Engines, backend: str) -> None:
    found = render(engines, runtime(transfer_backend=backend, router_image=backend))
    assert found.container("decoder")["command"][-1] == backend
    assert found.container("router")["image"] == backend


def test_the_example(engines: Engines) -> None:
    found = example(engines)
    assert found.container("engine")["image"] == "docker.io/lmsysorg/sglang:v0.5.23"
    assert found.words("engine")[-1] == "--tp-size=2"
    assert found.value("decoder", "--disaggregation-transfer-backend") == "mooncake"
    assert found.router().decode_selector == {
        "component": "decoder",
        "ome.io/inferenceservice": "llama-3-1-8b-instruct",
    }
    assert [item["metadata"]["name"] for item in found.plan.objects() if item["kind"] == "Deployment"] == [
        f"llama-3-1-8b-instruct-{name}" for name in COMPONENTS
    ]  # fmt: skip


CATALOG_PD = [
    "srt-deepseek-rdma-pd",
    "srt-kimi-k2-pd",
    "srt-llama-3-1-70b-instruct-pd",
    "srt-llama-3-2-1b-instruct-pd",
    "srt-llama-3-2-3b-instruct-pd",
    "srt-llama-3-3-70b-instruct-pd",
    "srt-llama-4-maverick-17b-128e-instruct-fp8-pd",
    "srt-llama-4-maverick-17b-128e-instruct-fp8-pd-grpc",
    "srt-llama-4-scout-17b-16e-instruct-pd",
    "srt-mistral-7b-instruct-pd",
    "srt-mixtral-8x7b-instruct-pd",
]


@pytest.fixture(scope="module")
def catalog() -> dict[str, ApiObject]:
    """The catalog's runtimes for prefill and decode, by name."""
    path = catalog_path()
    if not path.exists():
        pytest.skip(f"no catalog at {path}: set OME_CATALOG to its .tar.gz or directory")
    objects = load(catalog_files(path)).objects
    return {
        each.name: each
        for each in objects
        if "-pd" in each.name and "routerConfig" in each.raw["spec"]
    }


def test_the_catalog_has_these_runtimes_for_prefill_and_decode(
    catalog: dict[str, ApiObject],
) -> None:
    assert sorted(catalog) == CATALOG_PD


def launch_arguments(words: list[str], service_name: str) -> list[str]:
    """The arguments of a router's launch, also out of `sh -c`."""
    if words[:2] == ["sh", "-c"]:
        text = words[2].replace("${NAMESPACE}", "demo")
        words = shlex.split(text.replace("${INFERENCESERVICE_NAME}", service_name))
    assert words[:3] == ["python3", "-m", "sglang_router.launch_router"]
    return words[3:]


@pytest.mark.parametrize("name", CATALOG_PD)
def test_the_catalogs_runtimes_agree(
    catalog: dict[str, ApiObject], engines: Engines, name: str
) -> None:
    item = catalog[name]
    made = model_for(item)
    asked = service_for(item, made)
    found = Service(plan_of(item, made, asked, engines=engines))
    assert list(found.plan.refusals()) == []
    args = router_args(launch_arguments(found.words("router"), asked.name))
    assert (args.pd_disaggregation, args.service_discovery) == (True, True)
    assert args.service_discovery_namespace == "demo"
    assert ports_of(found.container("router")) == {"http": args.port}
    for component, mode in (("engine", "prefill"), ("decoder", "decode")):
        assert found.value(component, "--disaggregation-mode") == mode
        assert found.value(component, "--port") == str(args.service_discovery_port)
        # Neither names a bootstrap port: the engine's default is the decoder's too.
        assert "--disaggregation-bootstrap-port" not in found.words(component)
        annotations = found.template(component)["metadata"]["annotations"]
        assert args.bootstrap_port_annotation not in annotations
    labels = {each: found.template(each)["metadata"]["labels"] for each in COMPONENTS}
    for selector, component in (
        (args.prefill_selector, "engine"),
        (args.decode_selector, "decoder"),
    ):
        # LeaderWorkerSet's controller sets the label that singles out leaders.
        selector.pop("leaderworkerset.sigs.k8s.io/worker-index", None)
        reached = [each for each in COMPONENTS if selector.items() <= labels[each].items()]
        assert reached == [component]
    kinds = {each["kind"] for each in found.plan.objects()}
    assert {"ServiceAccount", "Role", "RoleBinding"} <= kinds
