"""Filling runtimes from presets: where the values stand, what is refused, and who sees the filled spec."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ome.api import ApiObject, ObjectRef
from ome.engines import (
    CONTRACT,
    EngineInfo,
    Parameter,
    ParameterType,
    Preset,
    hookimpl,
)
from ome.engines.engines import Engine, Engines, register
from ome.lint.lint import lint
from ome.merging.schema import RUNTIME_SPEC
from ome.merging.strategic import merge
from ome.planning.diff import compare, render_all
from ome.planning.plan import Hold
from ome.planning.planner import plan
from ome.planning.runtimes import report_runtime
from ome.snapshot import Lineage, Snapshot
from ome.sources import InstalledPresets
from ome.testing.builders import container, deployment, model, obj, plan_of, service

Json = dict[str, Any]

TEMPLATE = """\
engineConfig:
  minReplicas: 2
  runner:
    name: ome-container
    image: {{ image | tojson }}
    env:
      - {name: A, value: "preset"}
      - {name: B, value: "preset"}
    ports:
      - containerPort: {{ http_port }}
"""
PRESET = Preset(
    "fake-pd",
    TEMPLATE,
    (
        Parameter("image", "preset:v1", "the image"),
        Parameter("http-port", 30000, "the port", ParameterType.PORT),
    ),
)


def engine(*presets: Preset, name: str = "fake", hook: Callable[[], Any] | None = None) -> Engine:
    class Plugin:
        @hookimpl
        def ome_describe(self) -> EngineInfo:
            return EngineInfo(name, CONTRACT, "for tests")

        @hookimpl
        def ome_presets(self) -> Any:
            return hook() if hook else list(presets)

    return register(Plugin(), distribution=f"ome-engine-{name}", version="1")


ENGINES = Engines([engine(PRESET, Preset("other", "{}"))])


def runtime(
    preset: str = "fake-pd", name: str = "rt", parent: str = "", spec: Json | None = None, **parameters: str
) -> ApiObject:  # fmt: skip
    annotations = {
        f"engine.ome.io/{key.replace('_', '-')}": text for key, text in parameters.items()
    }
    if preset:
        annotations["ome.io/engine"] = preset
    if parent:
        annotations["ome.io/inherit-from"] = parent
    return obj("ClusterServingRuntime", name, spec or {}, annotations=annotations)


def snapshot(*objects: ApiObject, engines: Engines = ENGINES) -> Snapshot:
    return Snapshot.of(objects, presets=InstalledPresets(engines))


def filled(item: ApiObject, engines: Engines = ENGINES) -> Any:
    found = snapshot(item, engines=engines).runtime_of(item.ref)
    assert found is not None
    return found.raw["spec"]


def refusal(item: ApiObject, engines: Engines = ENGINES) -> str:
    (problem,) = snapshot(item, engines=engines).preset_problems
    return str(problem)


def test_unset_fields_are_filled_and_set_ones_win() -> None:
    own = {
        "engineConfig": {
            "minReplicas": 0,
            "runner": {
                "name": "ome-container",
                "image": "own:v1",
                "env": [{"name": "B", "value": "own"}, {"name": "C", "value": "own"}],
                "ports": [{"containerPort": 8080}],
            },
        },
        "disabled": False,
    }
    item = runtime(spec=own)
    assert filled(item) == {
        "engineConfig": {
            "minReplicas": 0,
            "runner": {
                "name": "ome-container",
                "image": "own:v1",
                "env": [
                    {"name": "A", "value": "preset"},
                    {"name": "B", "value": "own"},
                    {"name": "C", "value": "own"},
                ],
                "ports": [{"containerPort": 30000}, {"containerPort": 8080}],
            },
        },
        "disabled": False,
    }
    assert item.raw["spec"] == own


def test_parameters() -> None:
    runner = filled(runtime(image="a: b # c", http_port="8080"))["engineConfig"]["runner"]
    assert (runner["image"], runner["ports"]) == ("a: b # c", [{"containerPort": 8080}])
    runner = filled(runtime(image="", http_port=""))["engineConfig"]["runner"]
    assert (runner["image"], runner["ports"]) == ("preset:v1", [{"containerPort": 30000}])


@pytest.mark.parametrize("annotations", [{}, {"ome.io/engine": ""}])
def test_no_preset_is_no_preset(annotations: Json) -> None:
    item = obj("ServingRuntime", "rt", {}, annotations=annotations)
    found = snapshot(item)
    assert found.runtime_of(item.ref) is item
    assert not found.fillings


KNOWN = "name one of these, or install the plugin that supplies it"
AT = "ClusterServingRuntime/rt: metadata.annotations[ome.io/engine]: "


@pytest.mark.parametrize(
    ("item", "message"),
    [
        (runtime("vllm-pd"), f'{AT}unknown ome.io/engine value "vllm-pd" (known: fake-pd, other); {KNOWN}'),
        (runtime("Fake-pd"), f'{AT}unknown ome.io/engine value "Fake-pd" (known: fake-pd, other); {KNOWN}'),
        (runtime(" "), f'{AT}unknown ome.io/engine value " " (known: fake-pd, other); {KNOWN}'),
        (
            runtime(htp_port="1"),
            "ClusterServingRuntime/rt: metadata.annotations[engine.ome.io/htp-port]: preset fake-pd has no "
            'parameter "htp-port" (known: http-port, image); name one of these, or remove it',
        ),
        (
            runtime("other", image="x"),
            "ClusterServingRuntime/rt: metadata.annotations[engine.ome.io/image]: preset other has no "
            'parameter "image" (known: none); name one of these, or remove it',
        ),
        (
            runtime(http_port="80x"),
            "ClusterServingRuntime/rt: metadata.annotations[engine.ome.io/http-port]: parameter http-port of "
            'preset fake-pd: "80x" is no port, a number from 1 to 65535; remove it to get 30000',
        ),
    ],
)  # fmt: skip
def test_what_a_runtime_gets_wrong(item: ApiObject, message: str) -> None:
    assert refusal(item) == message
    assert filled(item) == {}


FIX = "mend the plugin, or write what the preset gives into the runtime and remove the annotation"


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("{{ missing }}", "'missing' is undefined"),
        ("{% for i in range(100000) %}{% endfor %}", "it takes more than 1,000 steps"),
        ("{{ ''.__class__ }}", "access to attribute '__class__' of 'str' object is unsafe."),
        ("{% for i in range(900) %}" + "x" * 20_000 + "{% endfor %}", "it gives more than 262,144 characters"),
        ("", "its template is no text"),
        ("a: [", "its text: document 1, line 1: not valid YAML: while parsing a flow node, did not find expected node content"),
        ("- a", "it gives something that is no part of a runtime's spec"),
        ("{# #}", "it gives something that is no part of a runtime's spec"),
        ("a: 1\n---\nb: 1", "it gives something that is no part of a runtime's spec"),
        ("a: &x [1]\nb: !!python/object:os.system x", None),
        ("{{ '{' * 1 }}", "* takes numbers; texts are joined by ~"),
        ("engineConfig: {runner: {$patch: delete}}", "it holds directives, and has nothing below it to remove"),
        ("engineConfg: {}", "spec.engineConfg: unknown field, the API server drops it"),
        ("engineConfig: {runner: {image: x}}", "spec.engineConfig.runner.name: required"),
        ("engineConfig: {minReplicas: many}", 'spec.engineConfig.minReplicas: must be an integer, not a string ("many")'),
        ("a: " + "[" * 200 + "]" * 200, "its text: document 1, line 1: it is nested more than 100 levels deep"),
    ],
)  # fmt: skip
def test_what_a_plugin_gets_wrong(template: str, why: str | None) -> None:
    engines = Engines([engine(Preset("bad", template), PRESET)])
    found = refusal(runtime("bad"), engines)
    start = f"{AT}preset bad of engine plugin fake (ome-engine-fake 1) failed: "
    assert found.startswith(start)
    assert found.endswith(f"; {FIX}")
    if why is not None:
        assert found == f"{start}{why}; {FIX}"
    assert filled(runtime(), engines)["engineConfig"]["minReplicas"] == 2


def test_a_preset_can_refuse_its_parameters() -> None:
    engines = Engines([engine(Preset("picky", "{{ fail('ports clash') }}"))])
    assert refusal(runtime("picky"), engines) == (
        f"{AT}preset picky: ports clash; change the preset's parameters"
    )


def test_a_plugin_whose_presets_fail_is_named_where_a_runtime_wants_one() -> None:
    def fails() -> None:
        raise RuntimeError("no luck")

    engines = Engines([engine(hook=fails), engine(PRESET, name="good")])
    assert refusal(runtime("lost"), engines) == (
        f'{AT}unknown ome.io/engine value "lost" (known: fake-pd); '
        "engine plugin fake (ome-engine-fake 1): ome_presets failed: RuntimeError: no luck"
    )
    assert filled(runtime(), engines)


def test_without_plugins_a_preset_is_refused() -> None:
    message = f'{AT}unknown ome.io/engine value "fake-pd" (known: none installed); {KNOWN}'
    assert refusal(runtime(), Engines()) == message
    (problem,) = Snapshot.of([runtime()]).preset_problems
    assert str(problem) == message
    effective = Lineage([runtime()]).effective(problem.ref)  # type: ignore[arg-type, list-item]
    assert effective.broken is not None
    assert effective.broken.reason == "UnknownPreset"


def test_a_preset_stands_under_the_child_that_names_it_and_over_its_parent() -> None:
    """Own specs are filled before chains merge, so a preset on a child beats its parent."""
    env = [{"name": "A", "value": "parent"}, {"name": "P", "value": "parent"}]
    parent_spec = {"engineConfig": {"minReplicas": 5, "runner": {"name": "ome-container", "env": env}}}  # fmt: skip
    parent = runtime("", "parent", spec=parent_spec)
    child = runtime(parent="parent", spec={"engineConfig": {"runner": {"name": "ome-container", "image": "own"}}})  # fmt: skip
    config = snapshot(parent, child).lineage.effective(child.ref).spec["engineConfig"]
    assert config["minReplicas"] == 2
    assert {item["name"]: item["value"] for item in config["runner"]["env"]} == {
        "A": "preset",
        "B": "preset",
        "P": "parent",
    }
    root = runtime("fake-pd", "parent", spec=parent_spec)
    leaf = runtime("", parent="parent", spec={"engineConfig": {"minReplicas": 9}})
    config = snapshot(root, leaf).lineage.effective(leaf.ref).spec["engineConfig"]
    assert (config["minReplicas"], config["runner"]["image"]) == (9, "preset:v1")
    codes = [finding.code for finding in lint(snapshot(parent, child), ENGINES)]
    assert "PresetBeatsParent" in codes
    codes = [finding.code for finding in lint(snapshot(root, leaf), ENGINES)]
    assert "PresetBeatsParent" not in codes


def test_directives_of_a_runtime_remove_from_its_preset() -> None:
    runner = {
        "name": "ome-container",
        "env": [{"name": "A", "$patch": "delete"}, {"name": "GONE", "$patch": "delete"}],
    }
    item = runtime(spec={"engineConfig": {"runner": runner}})
    rendered = plan_of(item, service(), engines=ENGINES, provenance=True)
    assert container(rendered)["env"] == [{"name": "B", "value": "preset"}]
    assert filled(item)["engineConfig"]["runner"]["env"] == [{"name": "B", "value": "preset"}]
    (warning,) = rendered.warnings
    assert (warning.code, str(warning.ref)) == ("DirectiveUnmatched", "ClusterServingRuntime/rt")
    assert warning.path == "spec.engineConfig.runner.env[1].$patch"


def test_directives_of_a_child_with_a_preset_also_remove_from_its_parent() -> None:
    names = [{"name": "P", "value": "parent"}, {"name": "Q", "value": "parent"}]
    parent = runtime(
        "", "parent", spec={"engineConfig": {"runner": {"name": "ome-container", "env": names}}}
    )
    gone = [{"name": name, "$patch": "delete"} for name in ("A", "P")]
    child = runtime(
        parent="parent", spec={"engineConfig": {"runner": {"name": "ome-container", "env": gone}}}
    )
    rendered = plan_of(parent, child, service(), engines=ENGINES)
    assert {each["name"] for each in container(rendered)["env"]} == {"B", "Q"}
    assert rendered.warnings == ()


def test_directives_of_a_chosen_runtime() -> None:
    engines = Engines([engine(SELECTABLE)])
    gone = [{"name": name, "$patch": "delete"} for name in ("A", "GONE")]
    item = runtime(
        "selectable", spec={"engineConfig": {"runner": {"name": "ome-container", "env": gone}}}
    )
    asked = service(runtime=None, model={"name": "m"})
    rendered = plan_of(item, model(), asked, engines=engines)
    assert "A" not in {each["name"] for each in container(rendered)["env"]}
    assert [each.code for each in rendered.warnings] == ["AutoSelected", "DirectiveUnmatched"]


def test_rendering_and_provenance() -> None:
    own = {"engineConfig": {"runner": {"name": "ome-container", "image": "own:v1"}}}
    rendered = plan_of(runtime(spec=own), service(), engines=ENGINES, provenance=True)
    assert container(rendered)["image"] == "own:v1"
    leaves = rendered.provenance["engine"]
    assert {path: leaf for path, leaf in leaves.items() if "ome-container" in path and leaf[1] != "default"} == {
        "containers[ome-container].env[A].name": ("A", "preset/fake-pd"),
        "containers[ome-container].env[A].value": ("preset", "preset/fake-pd"),
        "containers[ome-container].env[B].name": ("B", "preset/fake-pd"),
        "containers[ome-container].env[B].value": ("preset", "preset/fake-pd"),
        "containers[ome-container].image": ("own:v1", "ClusterServingRuntime/rt"),
        "containers[ome-container].name": ("ome-container", "ClusterServingRuntime/rt"),
        "containers[ome-container].ports[30000].containerPort": (30000, "preset/fake-pd"),
    }  # fmt: skip
    assert leaves["minReplicas"] == (2, "preset/fake-pd")


def test_revisions_hold_the_filled_spec() -> None:
    pinned = service(runtime={"name": "rt", "autoSync": False})
    rendered = plan_of(runtime(), pinned, engines=ENGINES)
    (made,) = rendered.effects
    assert made["data"] == filled(runtime())
    found = snapshot(runtime(), runtime(name="plain", preset="", spec=filled(runtime())))
    digests = {
        found.lineage.effective(ObjectRef("ClusterServingRuntime", "", name)).digest
        for name in ("rt", "plain")
    }
    assert len(digests) == 1


SELECTABLE = Preset(
    "selectable",
    "supportedModelFormats:\n"
    "  - {modelFormat: {name: safetensors, version: 1.0.0}, modelFramework: {name: transformers, version: 4.50.0},\n"
    "     autoSelect: true}\n" + TEMPLATE.replace("{{ image | tojson }}", "x").replace("{{ http_port }}", "80"),
)  # fmt: skip


def test_a_chosen_runtime_is_judged_and_rendered_filled() -> None:
    engines = Engines([engine(SELECTABLE)])
    asked = service(runtime=None, model={"name": "m"})
    rendered = plan_of(runtime("selectable"), model(), asked, engines=engines)
    assert rendered.decision is not None
    assert rendered.decision["runtime"] == "ClusterServingRuntime/rt"
    assert container(rendered)["image"] == "x"


HELD = 'unknown ome.io/engine value "nope" (known: fake-pd, other)'


@pytest.mark.parametrize(
    ("objects", "path"),
    [
        ([runtime("nope"), service()], "spec.runtime.name"),
        ([runtime("nope"), model(), service(model={"name": "m"})], "spec.runtime.name"),
        ([runtime("nope", "base"), runtime("", parent="base"), service()], "spec.runtime.name"),
        (
            [
                runtime("nope", spec={"supportedModelFormats": [{"modelFormat": {"name": "safetensors", "version": "1.0.0"}, "modelFramework": {"name": "transformers", "version": "4.50.0"}, "autoSelect": True}]}),
                model(),
                service(runtime=None, model={"name": "m"}),
            ],
            "spec.model.name",
        ),
    ],
    ids=["named", "with a model", "through a child", "chosen"],
)  # fmt: skip
def test_a_refused_runtime_holds_the_services_that_use_it(
    objects: list[ApiObject], path: str
) -> None:
    name = objects[0].name
    fine = [runtime(name="fine"), service("other", runtime={"name": "fine"})]
    found = snapshot(*objects, *fine)
    held, rendered = (plan(found, item, ENGINES) for item in found.services())
    assert all(isinstance(action, Hold) for action in held.actions.values())
    (problem,) = {problem for _, problem in held.refusals()}
    assert (problem.code, problem.message, problem.path) == ("UnknownPreset", HELD, path)
    assert problem.fix == (
        f"mend metadata.annotations[ome.io/engine] of ClusterServingRuntime/{name}: {KNOWN}"
    )
    assert held.denial == HELD
    assert [event.reason for event in held.events] == ["RuntimeValidationError"]
    assert deployment(rendered)
    findings = [finding for finding in lint(found, ENGINES) if finding.code == "UnknownPreset"]
    assert [str(finding.ref) for finding in findings[:1]] == [f"ClusterServingRuntime/{name}"]
    assert "InferenceService/demo/chat" in {str(finding.ref) for finding in findings}


def test_a_pinned_service_has_nothing_to_pin_to() -> None:
    asked = service(runtime={"name": "rt", "autoSync": False})
    (problem,) = {problem for _, problem in plan_of(runtime("nope"), asked, engines=ENGINES).refusals()}  # fmt: skip
    assert problem.message == f"resolve live runtime rt: {HELD}"


def test_the_runtime_says_so_too() -> None:
    item = runtime("nope")
    report = report_runtime(snapshot(item), item)  # type: ignore[arg-type]
    (condition,) = report.status["conditions"]
    assert (condition["status"], condition["reason"], condition["message"]) == (
        "False",
        "ResolverError",
        HELD,
    )


def test_parameters_without_a_preset_are_found() -> None:
    (finding,) = [
        finding
        for finding in lint(snapshot(runtime("", http_port="80")), ENGINES)
        if finding.code == "PresetParameterIdle"
    ]
    assert (finding.path, finding.message) == (
        "metadata.annotations[engine.ome.io/http-port]",
        "it sets a parameter, but the runtime has no ome.io/engine: no effect",
    )


def test_a_change_of_the_preset_shows_in_a_diff() -> None:
    newer = Preset("fake-pd", TEMPLATE.replace("preset:v1", "x").replace("minReplicas: 2", "minReplicas: 3"), PRESET.parameters)  # fmt: skip
    before = snapshot(runtime(), service())
    after = snapshot(runtime(image="preset:v2"), service(), engines=Engines([engine(newer)]))
    (change,) = compare(render_all(before, ENGINES), render_all(after, ENGINES))
    causes = {field.field: field.cause for field in change.fields}
    assert causes["containers[ome-container].image"] == "preset/fake-pd"


def test_a_lineage_that_is_kept_up_fills_what_is_put_in() -> None:
    lineage = Lineage((), InstalledPresets(ENGINES))
    child = runtime("", name="child", parent="rt")
    for item in (runtime(), child):
        lineage.put(item)  # type: ignore[arg-type]
    assert lineage.effective(child.ref).spec == filled(runtime())
    assert lineage.put(runtime()) == frozenset()  # type: ignore[arg-type]
    assert lineage.put(runtime("nope")) == {runtime().ref, child.ref}  # type: ignore[arg-type]
    assert lineage.put(runtime("nope2")) == {runtime().ref, child.ref}  # type: ignore[arg-type]
    effective = lineage.effective(child.ref)
    assert effective.broken is not None
    assert effective.broken.message == 'unknown ome.io/engine value "nope2" (known: fake-pd, other)'
    assert lineage.remove(runtime().ref) == {runtime().ref, child.ref}


def env(names: str) -> list[Json]:
    return [{"name": name, "value": name} for name in dict.fromkeys(names)]


SPECS = st.builds(
    lambda names, image, least: {
        "engineConfig": {
            **({"minReplicas": least} if least is not None else {}),
            "runner": {"name": "ome-container", "image": image, "env": env(names)},
        }
    },
    st.text("ABCDE", max_size=4),
    st.sampled_from(["", "own"]),
    st.none() | st.integers(0, 3),
)


@given(SPECS)
def test_filling_is_merging_over_the_preset_and_filling_twice_is_filling_once(own: Json) -> None:
    once: Mapping[str, Any] = filled(runtime(spec=own))
    assert once == merge(filled(runtime()), own, RUNTIME_SPEC)
    assert filled(runtime(spec=dict(once))) == once
