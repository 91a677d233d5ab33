"""Pod templates are frozen: a change of them restarts GPU pods when OME is upgraded."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import podtemplates
from ome.engines.engines import Engines
from ome.planning import objects, podbuild
from ome.planning.plan import Plan

CASES = podtemplates.cases(podtemplates.CORE)
OWN = [each for each in CASES if (each / "input.yaml").exists()]


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.name)
def test_frozen(case: Path) -> None:
    podtemplates.check(case, Engines())


@pytest.mark.parametrize("case", OWN, ids=lambda path: path.name)
def test_a_case_says_what_it_is_about(case: Path) -> None:
    assert (case / "input.yaml").read_text().startswith("# ")


def test_every_example_is_frozen() -> None:
    folders = (*CASES, *podtemplates.cases(podtemplates.WITH_PLUGINS))
    frozen = {each.name for each in folders if not (each / "input.yaml").exists()}
    assert frozen == {each.name for each in podtemplates.cases(podtemplates.ROOT / "examples")}


def test_a_changed_builder_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the object, the field, what it means and how it is accepted."""
    case = podtemplates.CORE / "unknown-engine"
    build = podbuild.with_defaults

    def changed(pod: Any, *args: Any, **kwargs: Any) -> Any:
        (container,) = pod["containers"]
        container = {**container, "env": [*container["env"], {"name": "NEW", "value": "1"}]}
        return build({**pod, "containers": [container]}, *args, **kwargs)

    monkeypatch.setattr(podbuild, "with_defaults", changed)
    with pytest.raises(AssertionError) as caught:
        podtemplates.check(case, Engines())
    assert str(caught.value) == (
        "tests/golden/pods/unknown-engine/pods.yaml: pod templates are not as frozen\n"
        "  Deployment/search/embed-engine: template.spec.containers[ome-container].env[NEW]: "
        'absent -> {"name": "NEW", "value": "1"}\n'
        "This restarts the pods of every such service when OME or a plugin is upgraded. Keep the pods as they "
        "were. If they have to change, have it decided in review, say it in CHANGELOG.md, and accept it with: make pods"
    )


def pods(template: str, selector: str = "app: a", name: str = "a") -> str:
    return f"kind: Deployment\nnamespace: n\nname: {name}\nselector: {{matchLabels: {{{selector}}}}}\ntemplate: {template}\n"


ENV = "spec: {containers: [{name: c, env: [%s]}]}"
WORDS = "spec: {containers: [{name: c, args: [%s]}]}"
C = "Deployment/n/a: template.spec.containers[c]"

DIFFERENCES = [
    ("equal", pods("{a: 1}"), pods("{a: 1}"), []),
    (
        "a number as text",
        pods("{a: 1}"),
        pods('{a: "1"}'),
        ['Deployment/n/a: template.a: 1 -> "1"'],
    ),
    ("true for 1", pods("{a: 1}"), pods("{a: true}"), ["Deployment/n/a: template.a: 1 -> true"]),
    ("gone", pods("{a: {b: 1}}"), pods("{}"), ['Deployment/n/a: template.a: {"b": 1} -> absent']),
    ("null", pods("{}"), pods("{a: null}"), ["Deployment/n/a: template.a: absent -> null"]),
    (
        "an annotation",
        pods('{metadata: {annotations: {"example.com/a": x}}}'),
        pods('{metadata: {annotations: {"example.com/a": y}}}'),
        ['Deployment/n/a: template.metadata.annotations[example.com/a]: "x" -> "y"'],
    ),
    (
        "a variable",
        pods("{" + ENV % "{name: A, value: x}" + "}"),
        pods("{" + ENV % "{name: A, value: y}" + "}"),
        [f'{C}.env[A].value: "x" -> "y"'],
    ),
    (
        "the order of variables",
        pods("{" + ENV % "{name: A}, {name: B}" + "}"),
        pods("{" + ENV % "{name: B}, {name: C}, {name: A}" + "}"),
        [f'{C}.env[C]: absent -> {{"name": "C"}}', f'{C}.env (order): ["A", "B"] -> ["B", "A"]'],
    ),
    (
        "words",
        pods("{" + WORDS % "a, b, c, d" + "}"),
        pods("{" + WORDS % "a, x, c, d, e" + "}"),
        [f'{C}.args[1]: "b" -> "x"', f'{C}.args[4]: absent -> "e"'],
    ),
    (
        "ports of one number",
        pods("{ports: [{containerPort: 1, protocol: TCP}, {containerPort: 1, protocol: UDP}]}"),
        pods("{ports: [{containerPort: 1, protocol: TCP}]}"),
        ['Deployment/n/a: template.ports[1]: {"containerPort": 1, "protocol": "UDP"} -> absent'],
    ),
    (
        "the selector",
        pods("{}"),
        pods("{}", "app: b"),
        ['Deployment/n/a: selector.matchLabels.app: "a" -> "b"'],
    ),
    (
        "nothing but the text",
        pods("{a: {}}"),
        pods("{a: {}}") + "# by hand",
        ["the pods are the same, and written otherwise than the tool writes them"],
    ),
    (
        "another workload",
        pods("{}"),
        pods("{}", name="b"),
        ["Deployment/n/a: is no longer rendered", "Deployment/n/b: is rendered and not frozen"],
    ),
]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [each[1:] for each in DIFFERENCES],
    ids=[each[0] for each in DIFFERENCES],
)
def test_differences(before: str, after: str, expected: list[str]) -> None:
    assert podtemplates.differences(before, after) == expected


def test_a_changed_selector_is_worse() -> None:
    found = podtemplates.differences(pods("{}"), pods("{}", "app: b"))
    assert podtemplates.complaint("x", found).splitlines()[-1] == (
        "A selector can't be changed: the API server refuses it until the workload is deleted."
    )


def test_objects_with_pods_elsewhere_are_not_passed_over() -> None:
    plan = podtemplates.plans(podtemplates.CORE / "unknown-engine" / "input.yaml", Engines())
    (deployment, *_) = plan[0].objects()
    deployment["kind"] = "PodSet"
    del deployment["spec"]["template"]
    with pytest.raises(ValueError, match="where does a PodSet have its pods"):
        list(podtemplates.workloads(plan))


def test_a_refused_case_is_no_case(tmp_path: Path) -> None:
    text = (podtemplates.CORE / "unknown-engine" / "input.yaml").read_text()
    (tmp_path / "input.yaml").write_text(
        text.replace("{name: house-server, kind", "{name: gone, kind")
    )
    with pytest.raises(ValueError, match=r"renders no pods: .*ServingRuntime gone not found"):
        podtemplates.freeze(tmp_path / "input.yaml", Engines())
    with pytest.raises(FileNotFoundError, match=r"has no input.yaml, and examples/ has no none"):
        podtemplates.sources(tmp_path / "none")


def test_the_tool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It writes what differs, and with `--check` only says so."""
    core, plugins = tmp_path / "core", tmp_path / "plugins"
    case = core / "embed"
    case.mkdir(parents=True)
    plugins.mkdir()
    (case / "input.yaml").write_text(
        (podtemplates.CORE / "unknown-engine" / "input.yaml").read_text()
    )
    for name, value in (("ROOT", tmp_path), ("CORE", core), ("WITH_PLUGINS", plugins)):
        monkeypatch.setattr(podtemplates, name, value)
    monkeypatch.setattr(podtemplates, "own_engines", Engines)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = podtemplates.main(arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err.partition("\nThis restarts")[0]

    new = "  Deployment/search/embed-engine: is rendered and not frozen"
    assert run("--check") == (
        1,
        "",
        f"core/embed/pods.yaml: pod templates are not as frozen\n{new}",
    )
    assert not (case / "pods.yaml").exists()
    assert run() == (0, f"podtemplates: wrote core/embed/pods.yaml\n{new}\n", "")
    assert run("--check") == run() == (0, "", "")
    frozen = case / "pods.yaml"
    frozen.write_text(frozen.read_text().replace("search/embed\n", "search/other\n"))
    changed = (
        "  Deployment/search/embed-engine: template.spec.containers[ome-container].env[TENANT].value: "
        '"search/other" -> "search/embed"'
    )
    assert run("--check") == (
        1,
        "",
        f"core/embed/pods.yaml: pod templates are not as frozen\n{changed}",
    )
    assert run() == (0, f"podtemplates: wrote core/embed/pods.yaml\n{changed}\n", "")


# What the cases have to reach, so that a part of OME that makes pods can't change unseen.


@pytest.fixture(scope="module")
def rendered() -> list[Plan]:
    return [
        plan
        for case in CASES
        for plan in podtemplates.plans(podtemplates.sources(case), Engines(), provenance=True)
    ]


def leaves(rendered: list[Plan]) -> Iterator[tuple[str, Any, str]]:
    for plan in rendered:
        for component in plan.provenance.values():
            for path, (value, layer) in component.items():
                yield path, value, layer


def test_every_builder_of_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {
        name: each
        for name, each in inspect.getmembers(objects, inspect.isfunction)
        if each.__module__ == objects.__name__ and not name.startswith("_")
    }
    assert set(objects.__all__) <= set(found)
    called: set[str] = set()

    def spied(name: str, build: Callable[..., Any]) -> Callable[..., Any]:
        def spy(*args: Any, **kwargs: Any) -> Any:
            called.add(name)
            return build(*args, **kwargs)

        return spy

    for name, build in found.items():
        monkeypatch.setattr(objects, name, spied(name, build))
    for case in CASES:
        podtemplates.plans(podtemplates.sources(case), Engines())
    assert called == set(found)


def test_every_kind_of_layer(rendered: list[Plan]) -> None:
    """All but `preset`: presets come from plugins."""
    assert {layer.partition("/")[0] for _, _, layer in leaves(rendered)} == {
        "AcceleratorClass",
        "ClusterServingRuntime",
        "ControllerRevision",
        "InferenceService",
        "OME",
        "ServingRuntime",
        "configuration",
        "default",
    }


def test_every_scaler(rendered: list[Plan]) -> None:
    found = {value for path, value, _ in leaves(rendered) if path == "autoscaler.class"}
    assert found == {"HPA", "KEDA", "External", "None"}


def test_every_way_to_a_runtime_and_every_set_of_components(rendered: list[Plan]) -> None:
    decisions = [plan.decision or {} for plan in rendered]
    assert {each.get("selection") for each in decisions} >= {"Explicit", "Selected"}
    assert max(len(each.get("chain", ())) for each in decisions) >= 3
    sets = {tuple(plan.provenance) for plan in rendered if plan.provenance}
    assert sets == {
        ("engine",),
        ("engine", "decoder"),
        ("engine", "router"),
        ("engine", "decoder", "router"),
    }
