"""`kubectl ome runtime tree`, `effective`, `history` and `explain --with-effective` as a user meets them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import yaml

from ome.api import parse
from ome.cli.columns import display_width, table
from ome.cli.history import shown_revision
from ome.cli.main import main
from ome.engines.engines import Engines
from ome.merging.canonical import content_hash
from ome.testing.builders import model, obj, revision, runtime, service

VECTORS = Path(__file__).parents[1] / "vectors"


def vector(file: str, title: str) -> Any:
    cases = json.loads((VECTORS / file).read_text())["cases"]
    return next(case for case in cases if case["title"] == title)


OUTPUT = "effective-history-tree-output.json"
Json = dict[str, Any]
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def no_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ome.cli.input.discover", lambda **_: Engines())


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run `kubectl ome runtime …` on objects; gives exit code, stdout and stderr."""

    def runs(objects: list[Any], *arguments: str) -> tuple[int, str, str]:
        path = tmp_path / "in.json"
        raw = [item if isinstance(item, dict) else item.raw for item in objects]
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": raw}))
        command, *rest = arguments
        code = main(["runtime", command, "-f", str(path), *rest], prog="kubectl ome")
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return runs


def image(tag: str) -> Json:
    return {"engineConfig": {"runner": {"name": "ome-container", "image": f"vllm:{tag}"}}}


def documented(*, old: str = "1baf272d", new: str = "3c18f4a0") -> list[Any]:
    """The documented example; the hashes of its two revisions are those of its document, or given."""
    status = {
        "observedGeneration": 3,
        "pinnedRevisionName": f"cr-vllm-llama-{old}",
        "conditions": [{"type": "RuntimeDrifted", "status": "True", "reason": "RevisionMismatch"}],
    }
    chat = service(
        "llama-chat",
        namespace="team-a",
        model={"name": "llama"},
        runtime={"name": "vllm-llama", "autoSync": False},
        metadata={"generation": 3},
    )
    stored = [
        revision(
            image(tag),
            name=f"cr-vllm-llama-{short}",
            runtime="vllm-llama",
            creationTimestamp=created,
            labels={"ome.io/revision-hash": short},
        )
        for tag, short, created in (
            ("v1", old, "2026-09-01T08:00:00Z"),
            ("v2", new, "2026-09-20T14:30:00Z"),
        )
    ]
    inherits = {"ome.io/inherit-from": "vllm-base"}
    return [
        model("llama"),
        obj("ClusterServingRuntime", "vllm-base", image("v1")),
        obj("ClusterServingRuntime", "vllm-llama", image("v2"), annotations=inherits),
        parse({**chat.raw, "status": status}),
        *stored,
    ]


OLD, NEW = content_hash(image("v1"))[:8], content_hash(image("v2"))[:8]


def with_own_hashes(text: str) -> str:
    """A documented text with the hashes that OME's own revisions of the same content carry."""
    for theirs, ours in (("1baf272d", OLD), ("3c18f4a0", NEW)):
        cell = vector_cell(f"cr-vllm-llama-{theirs}")
        text = text.replace(cell, shown_revision(f"cr-vllm-llama-{ours}")).replace(theirs, ours)
    return text


def vector_cell(name: str) -> str:
    cases = json.loads((VECTORS / OUTPUT).read_text())["cases"]
    cell: str = next(case["cell"] for case in cases if case.get("name") == name)
    return cell


def expected(case: Json) -> str:
    if "stdout" in case:
        return str(case["stdout"])
    return table(case["header"], case["rows"])


@pytest.mark.parametrize("title", ["effective", "effective -o wide"])
def test_documented_effective(title: str, run: Run) -> None:
    case = vector(OUTPUT, title)
    assert run(documented(), *case["args"]) == (0, expected(case), "")
    ours = run(documented(old=OLD, new=NEW), *case["args"])
    assert ours == (0, with_own_hashes(expected(case)), "")


@pytest.mark.parametrize("title", ["history", "history -o wide"])
def test_documented_history(title: str, run: Run) -> None:
    case = vector(OUTPUT, title)
    ours = run(documented(old=OLD, new=NEW), *case["args"])
    assert ours == (0, with_own_hashes(expected(case)), "")
    # Hashes that can't be recomputed from what is in the file are neither right nor wrong.
    cells = (("OK   ", "?    "), ("Consistent ", "Unknown    "))
    unchecked = expected(case)
    for known, unknown in cells:
        unchecked = unchecked.replace(known, unknown)
    assert squeezed(run(documented(), *case["args"])[1]) == squeezed(unchecked)


def squeezed(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_documented_name_digests() -> None:
    for name in ("cr-vllm-llama-3c18f4a0", "cr-vllm-llama-1baf272d"):
        assert shown_revision(name) == vector_cell(name)
    assert shown_revision("cr-a-12345678x") == "cr-a-12345678x"


def forest(case: Json) -> list[Any]:
    """The objects that a documented tree is of."""
    given = case["objects"]
    made: list[Any] = []
    for kind, key in (("ClusterServingRuntime", "cluster"), ("ServingRuntime", "")):
        for item in given[f"{key}ServingRuntimes" if key else "servingRuntimes"]:
            inherits = {"ome.io/inherit-from": item["inheritFrom"]} if "inheritFrom" in item else {}
            spec = {"disabled": True} if item.get("disabled") else {}
            namespace = item.get("namespace", "")
            made.append(obj(kind, item["name"], spec, namespace=namespace, annotations=inherits))
    for item in given["inferenceServices"]:
        named = {"name": item["runtime"]} if "runtime" in item else None
        made.append(service(item["name"], namespace=item["namespace"], runtime=named))
    return made


@pytest.mark.parametrize("title", ["tree of a ClusterServingRuntime", "tree of a ServingRuntime"])
def test_documented_trees(title: str, run: Run) -> None:
    case = vector(OUTPUT, title)
    assert run(forest(case), *case["args"]) == (0, case["stdout"], "")


def test_documented_unattributed_users(run: Run) -> None:
    case = vector(OUTPUT, "unattributed users, inserted before Snapshot")
    plain = vector(OUTPUT, "tree of a ClusterServingRuntime")["stdout"]
    text = plain.replace("Snapshot:", case["inserted"] + "Snapshot:")
    assert run(forest(case), *case["args"]) == (0, text, "")


def test_a_tree_without_unattributed_users(run: Run) -> None:
    _, out, _ = run([runtime()], "tree", "rt", "--show-unattributed-users")
    assert "(not attributed to runtime tree):\n  none observed\nSnapshot:" in out


def test_explain_with_the_effective_context(run: Run) -> None:
    case = vector("explain-output.json", "effective context after a blank line")
    _, plain, note = run(documented(), "explain", "--isvc", "llama-chat", "-n", "team-a")
    assert plain.startswith("RUNTIME")
    assert run(documented(), "explain", *case["args"]) == (0, plain + case["appended"], note)
    arguments = ("explain", *case["args"], "-o", "json")
    content = json.loads(run(documented(), *arguments)[1])["effectiveContext"]
    assert content["liveToActive"] == "Different"


def test_explain_without_runtimes_still_has_a_context(run: Run) -> None:
    case = vector("explain-output.json", "no runtimes, with context")
    objects = [model("m"), service("x", namespace="default", model={"name": "m"}, runtime=None)]
    code, out, err = run(objects, "explain", *case["args"])
    assert (code, err) == (case["exit"], case["stderr"])
    assert out.splitlines()[:7] == [
        "",
        "Effective context (separate observation; selector verdict unchanged):",
        "SCOPE     FIELD           VALUE",
        "Service   SELECTION       Selected",
        "Service   SOURCE          -",
        "Source    INHERITANCE     Unavailable",
        "Source    REASON          NotFound",
    ]


ERRORS: list[tuple[list[Any], list[str], str]] = [
    ([], ["explain", "--model", "m", "--with-effective"], "--with-effective requires --isvc"),
    ([], ["explain", "--with-effective"], "exactly one of --model or --isvc is required"),
    ([], ["effective", "x"], 'get InferenceService: inferenceservices.ome.io "x" not found'),
    ([], ["history", "x"], 'get InferenceService: inferenceservices.ome.io "x" not found'),
    ([service()], ["effective", "chat"], 'get InferenceService: inferenceservices.ome.io "chat" not found'),
    ([], ["effective", "a" * 254], f'InferenceService name "{"a" * 254}" is invalid: must be no more than 253 characters'),
    ([], ["tree", "a" * 254], f'runtime name "{"a" * 254}" is invalid: must be no more than 253 characters'),
    ([], ["tree", "rt", "--kind", "Runtime"], 'unsupported runtime kind "Runtime" (supported: ServingRuntime, ClusterServingRuntime)'),
    ([], ["tree", "rt"], 'project runtime inheritance tree: runtime target was not found: "rt"'),
    (
        [runtime(), obj("ServingRuntime", "rt", {}, namespace="default")],
        ["tree", "rt"],
        'runtime "rt" is ambiguous; pass --kind ServingRuntime or --kind ClusterServingRuntime: runtime target '
        'is ambiguous: "rt" matched 2 runtimes',
    ),
]  # fmt: skip


@pytest.mark.parametrize(("objects", "arguments", "message"), ERRORS)
def test_errors(objects: list[Any], arguments: list[str], message: str, run: Run) -> None:
    objects = [*objects, model("any")]
    assert run(objects, *arguments) == (1, "", f"error: {message}\n")


@pytest.mark.parametrize("name", ["Chat", "a_b", "", "-a", "a..b", 'a"b'])
@pytest.mark.parametrize(
    ("command", "what"),
    [("effective", "InferenceService"), ("history", "InferenceService"), ("tree", "runtime")],
)
def test_names_that_are_refused(command: str, what: str, name: str, run: Run) -> None:
    code, out, err = run([runtime()], command, "--", name)
    text = (
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and "
        "must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
        r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
    )
    quoted = name.replace('"', '\\"')
    assert (code, out, err) == (1, "", f'error: {what} name "{quoted}" is invalid: {text}\n')


@pytest.mark.parametrize(
    "arguments",
    [
        ["effective", "x"],
        ["history", "x"],
        ["tree", "x"],
        ["explain", "--isvc", "x", "--with-effective"],
    ],
)
def test_without_files(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runtime", *arguments]) == 1
    text = "error: -f is required: this version of OME reads manifests, not a cluster\n"
    assert capsys.readouterr() == ("", text)


@pytest.mark.parametrize(
    "arguments", [["tree"], ["tree", "a", "b"], ["effective", "a", "-o", "xml"], ["sync", "a"], []]
)
def test_flags_that_can_not_be_used_exit_with_1(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["runtime", *arguments])
    assert caught.value.code == 1


def test_an_answer_that_can_not_be_written_exits_with_1(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full:
        def write(self, text: str) -> int:
            raise OSError(28, "No space left on device")

        def isatty(self) -> bool:
            return False

        def fileno(self) -> int:
            return 99

    monkeypatch.setattr("os.dup2", lambda *_: None)
    monkeypatch.setattr("sys.stdout", Full())
    code, _, err = run([runtime()], "tree", "rt")
    assert (code, err) == (1, "error: can't write the output: No space left on device\n")


@pytest.mark.parametrize(
    ("status", "path"),
    [
        ("x", "status"),
        ({"conditions": "x"}, "status.conditions"),
        ({"conditions": ["x"]}, "status.conditions[0]"),
        ({"pinnedRevisionName": 5}, "status.pinnedRevisionName"),
        ({"observedGeneration": "3"}, "status.observedGeneration"),
        ({"lastRuntimeSyncToken": []}, "status.lastRuntimeSyncToken"),
    ],
)
@pytest.mark.parametrize("command", ["effective", "history"])
def test_a_status_of_another_type_is_refused_by_its_field(
    command: str, status: Any, path: str, run: Run
) -> None:
    raw = {**service().raw, "status": status}
    code, out, err = run([raw, runtime()], command, "chat", "-n", "demo")
    assert (code, out) == (1, "")
    assert f"InferenceService/demo/chat: {path}: must be" in err


def test_a_status_of_nulls_says_nothing(run: Run) -> None:
    nulls = dict.fromkeys(
        ("conditions", "pinnedRevisionName", "observedGeneration", "lastRuntimeSyncToken")
    )
    raw = {**service().raw, "status": nulls}
    _, out, _ = run([raw, runtime()], "effective", "chat", "-n", "demo")
    assert "Service   STATUS          Unobserved\nService   DRIFT           NotReported\n" in out


def test_revisions_elsewhere_are_told_and_left_out(run: Run) -> None:
    own = revision({}, name="cr-rt-00000000")
    away = revision({}, namespace="team-a")
    foreign = {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {"name": "ds-1", "namespace": "team-a"},
    }
    nameless = {**foreign, "metadata": {}}
    objects = [service(), runtime(), own, away, foreign, nameless]
    _, out, err = run(objects, "history", "chat", "-n", "demo", "-o", "json")
    names = [each["revision"]["name"] for each in json.loads(out)["content"]["revisions"]]
    assert names == ["cr-rt-00000000"]
    assert (
        f"ControllerRevision/team-a/{away['metadata']['name']}: it is in namespace team-a, not ome"
        in err
    )
    assert "skipped objects that rendering doesn't read: ControllerRevision of apps/v1 (2)" in err
    # Another namespace of OME's own.
    _, out, _ = run(
        objects, "history", "chat", "-n", "demo", "--ome-namespace", "team-a", "-o", "json"
    )
    names = [each["revision"]["name"] for each in json.loads(out)["content"]["revisions"]]
    assert names == [away["metadata"]["name"]]


def test_no_revisions(run: Run) -> None:
    _, out, _ = run([service(), runtime()], "history", "chat", "-n", "demo")
    assert out == (
        "WINDOW    REVISION   CREATED   ROLES   CHECK   LIVE   ISSUES\n"
        "C/B/1/1   -          -         -       -       -      R0/G1\n"
    )
    _, out, _ = run([service(), runtime()], "history", "chat", "-n", "demo", "-o", "wide")
    assert squeezed(out)[1] == [
        "Complete",
        "RetentionBounded",
        "1/1",
        *"--------",
        "StatusUnobserved",
    ]


def test_more_than_nine_issues(run: Run) -> None:
    names = {"name": "rt", "kind": "Foo", "autoSync": False, "revision": "gone"}
    held = [
        revision("x", name="a", annotations={}, revision=2, labels={"ome.io/runtime-of-kind": ""})
        for _ in range(2)
    ]
    raw = {**service(runtime=names).raw, "status": {"pinnedRevisionName": "a"}}
    _, out, _ = run([raw, *held], "history", "chat", "-n", "demo")
    assert squeezed(out)[1][-4:] == ["RH", "BAD", "?", "R5/G5"]


def test_long_names_are_shortened_in_tables_only(run: Run) -> None:
    name, space = f"{'n' * 40}.{'m' * 40}", f"s{'p' * 60}"
    held = f"r-{space}-{name}-12345678"
    named = {"name": name, "kind": "ServingRuntime", "autoSync": False}
    raw = {
        **service(namespace=space, runtime=named).raw,
        "status": {"observedGeneration": 1, "pinnedRevisionName": held},
    }
    objects = [raw, obj("ServingRuntime", name, {}, namespace=space)]
    _, out, _ = run(objects, "effective", "chat", "-n", space)
    values = {tuple(line.split()[:2]): line.split()[-1] for line in out.splitlines()[1:]}
    assert values["Live", "RUNTIME"] == (
        f"SR/sppp...pppp{digest(space)}/{'n' * 9}...{'m' * 9}{digest(name)}"
    )
    assert values["Active", "REVISION"] == f"r-s{'p' * 18}...{'m' * 12}-12345678{digest(held)}"
    assert f"Service   ISSUE           RevisionNotFound(r-sppp...345678{digest(held)})\n" in out
    assert all(display_width(line) <= 80 for line in out.splitlines())
    _, wide, _ = run(objects, "effective", "chat", "-n", space, "-o", "wide")
    assert f"ServingRuntime/{space}/{name}" in wide
    assert f"RevisionNotFound({held})" in wide


def digest(text: str) -> str:
    return "#" + sha256(text.encode()).hexdigest()[:8]


def test_long_trees_keep_within_80_columns(run: Run) -> None:
    names = [".".join([letter * 63] * 3 + ["z" * 60]) for letter in "abcdef"]
    objects: list[Any] = [service("s" * 63, namespace="n" * 63, runtime={"name": names[4]})]
    for name, parent in zip(names, ["", *names[:5]], strict=True):
        inherits = {"ome.io/inherit-from": parent} if parent else {}
        objects.append(obj("ClusterServingRuntime", name, {}, annotations=inherits))
    _, out, _ = run(objects, "tree", names[1])
    lines = out.splitlines()
    assert max(map(display_width, lines)) == 80
    tail = f"{digest(names[5])}"
    assert f"  subject: ClusterServingRuntime/{'f' * 18}...{'z' * 17}{tail}" in lines
    assert "Issue: MaxDepthExceeded" in lines
    assert sum(line.startswith("  -> ClusterServingRuntime/") for line in lines) == 4
    assert " " * 16 + f"`-- InferenceService/{'n' * 5}...{'n' * 4}{digest('n' * 63)}/" in "\n".join(
        lines
    )
    assert all(
        line.split("/")[0].lstrip("`|- ") in KNOWN
        for line in lines
        if "`-- " in line or "|-- " in line
    )
    _, wide, _ = run(objects, "tree", names[1], "-o", "wide")
    assert (
        f"Issue path: {' -> '.join('ClusterServingRuntime/' + each for each in names[:0:-1])}"
        in wide
    )


KNOWN = {"ClusterServingRuntime", "ServingRuntime", "InferenceService"}


def test_what_a_terminal_would_act_on_is_written_out(run: Run) -> None:
    named = {"name": "a\x1b[31m\n\u202eb界", "autoSync": True}
    raw = service(runtime=named).raw
    for output in ("table", "wide"):
        _, out, _ = run([raw], "effective", "chat", "-n", "demo", "-o", output)
        assert r"a\x1b[31m\n\u202eb界" in out
    _, out, _ = run([raw, runtime()], "tree", "rt", "--show-unattributed-users")
    assert "state=Invalid reason=InvalidRuntimeName" in out
    assert "\x1b" not in out


def test_reports_as_data_are_the_same_in_json_and_yaml(run: Run) -> None:
    for arguments in (
        ["effective", "llama-chat"],
        ["history", "llama-chat"],
        ["tree", "vllm-llama"],
    ):
        read = []
        for output in ("json", "yaml"):
            _, out, _ = run(documented(), *arguments, "-n", "team-a", "-o", output)
            read.append(without_times(yaml.safe_load(out)))
        assert read[0] == read[1]
        assert read[0]["apiVersion"] == "cli.ome.io/v1alpha1"


def without_times(value: Any) -> Any:
    """The clock is the command's: two runs differ in it."""
    if isinstance(value, dict):
        return {key: without_times(item) for key, item in value.items() if key != "collectedAt"}
    return [without_times(item) for item in value] if isinstance(value, list) else value


def test_only_a_narrower_terminal_wraps(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ("effective", "llama-chat", "-n", "team-a", "-o", "wide")
    _, out, _ = run(documented(), *arguments)
    assert len(out.splitlines()) == 3
    for module in ("ome.cli.target", "ome.cli.explain"):
        monkeypatch.setattr(f"{module}.terminal_width", lambda: 60)
    _, out, _ = run(documented(), *arguments)
    assert "PIN-STATE:       Resolved\n" in out
    for plain in (["explain", "--model", "llama"], ["effective", "llama-chat", "-n", "team-a"]):
        _, out, _ = run(documented(), *plain)
        assert 40 < max(map(display_width, out.splitlines())) <= 60


ROOT = Path(__file__).parents[2]
SHOWN = re.findall(
    r"```console\n\$ ome (.*)\n((?s:.*?))```", (ROOT / "docs/runtime.md").read_text()
)


@pytest.mark.parametrize(("command", "shown"), SHOWN, ids=[command for command, _ in SHOWN])
def test_the_outputs_in_the_documentation(
    command: str,
    shown: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(ROOT)
    assert main(command.split()) == 0
    assert capsys.readouterr().out == shown


def test_every_command_is_in_the_documentation() -> None:
    assert {command.split()[1] for command, _ in SHOWN} == {
        "effective",
        "explain",
        "history",
        "tree",
    }
