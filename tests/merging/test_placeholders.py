"""Placeholders: the documented forms, what is refused, and what is left alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ome.merging.placeholders import Context, MalformedPlaceholder, expand, expand_text

CONTEXT = Context(
    name="chat",
    namespace="demo",
    labels={"team": "red", "a.b/c": "bot", "tricky": "{{.Name}}"},
    annotations={"owner": "ann"},
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{{.Name}}", "chat"),
        ("x-{{ .Namespace }}-{{.Name}}", "x-demo-chat"),
        ("{{.Labels.team}}", "red"),
        ("{{.Annotations.owner}}", "ann"),
        ("{{.Labels.absent}}", "<no value>"),
        ("{{index .Labels `a.b/c`}}", "bot"),
        ('{{ index .Labels "a.b/c" }}', "bot"),
        ("{{index .Annotations `absent`}}|", "|"),
        ('{{"{{"}}.Name{{"}}"}}', "{{.Name}}"),
        ("{{`{{`}}", "{{"),
        ("a {{- .Name -}} b", "achatb"),
        ("$(MODEL_PATH) {single} }}", "$(MODEL_PATH) {single} }}"),
        ("{{.Labels.tricky}}", "{{.Name}}"),
        ("<b>&'\"{{.Name}}", "<b>&'\"chat"),
    ],
)
def test_documented_forms(text: str, expected: str) -> None:
    assert expand_text(text, CONTEXT) == (expected, False)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (
            "{{.Labels.a-b}}",
            "malformed placeholder {{.Labels.a-b}} at character 1: the field form takes letters, digits "
            'and "_", not "-"',
            "write {{index .Labels `a-b`}}",
        ),
        (
            "--n={{.Name",
            "malformed placeholder {{.Name at character 5: it has no closing }}",
            "close it with }}",
        ),
        (
            "{{.Spec.x}}",
            "malformed placeholder {{.Spec.x}} at character 1: it is none of the documented forms",
            "use {{.Name}}, {{.Namespace}}, {{.Labels.key}}, {{.Annotations.key}}, {{index .Labels `key`}}",
        ),
        (
            "{{.Labels.1a}}",
            "malformed placeholder {{.Labels.1a}} at character 1: the field form takes letters, digits "
            'and "_", and no digit first',
            "write {{index .Labels `1a`}}",
        ),
    ],
)
def test_malformed(text: str, message: str, hint: str) -> None:
    with pytest.raises(MalformedPlaceholder) as caught:
        expand_text(text, CONTEXT)
    assert (str(caught.value), caught.value.hint) == (message, hint)


@pytest.mark.parametrize(
    "text",
    ["{{.Labels}}", "{{.Name | upper}}", "{{index .Labels}}", '{{"text"}}', "{{ index }}", "{{.}}"],
)
def test_anything_else_that_looks_like_ours_is_refused(text: str) -> None:
    with pytest.raises(MalformedPlaceholder):
        expand_text(text, CONTEXT)


@pytest.mark.parametrize(
    "text",
    [
        "{{ message['content'] }}",
        "{% for m in messages %}{{ m }}{% endfor %}",
        "{{-1}}",
        "{{indexed}}",
    ],
)
def test_other_template_text_passes_through(text: str) -> None:
    assert expand_text(text, CONTEXT) == (text, True)


def test_a_chat_template_beside_a_placeholder() -> None:
    assert expand_text("{{ m }}{{.Name}}", CONTEXT) == ("{{ m }}chat", True)


def test_expand_walks_a_value_and_names_the_field() -> None:
    foreign: list[str] = []
    value = {
        "args": ["--n={{.Name}}", "{{ m }}"],
        "env": [{"name": "A", "value": "x"}],
        "stdin": True,
    }
    expanded = expand(value, CONTEXT, foreign)
    assert expanded["args"] == ["--n=chat", "{{ m }}"]
    assert expanded["env"] is value["env"]
    assert foreign == ["args[1]"]
    with pytest.raises(MalformedPlaceholder) as caught:
        expand({"env": [{"value": "{{.X}}"}]}, CONTEXT, [])
    assert caught.value.path == "env[0].value"


def test_a_value_without_placeholders_is_returned_itself() -> None:
    value = {"args": ["a"], "nested": {"b": ["c"]}}
    assert expand(value, CONTEXT, []) is value


@given(st.text(alphabet='{}%.-` NameLabels"index', max_size=40))
def test_no_text_breaks_it(text: str) -> None:
    try:
        expanded, _ = expand_text(text, CONTEXT)
    except MalformedPlaceholder as error:
        assert text[error.offset - 1 :].startswith("{{")
    else:
        assert isinstance(expanded, str)
