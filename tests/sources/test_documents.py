"""Reading documents: what Kubernetes' YAML is, and what is refused with its place."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ome.cli.output import to_yaml
from ome.sources.documents import UnreadableInput, read_documents


def values(text: str | bytes, file: str = "x.yaml") -> list[Any]:
    data = text if isinstance(text, bytes) else text.encode()
    return [document.value for document in read_documents(data, file)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 1\nb: yes\nc: null\nd:\ne: ~", [{"a": 1, "b": True, "c": None, "d": None, "e": None}]),
        ("a: 2024-01-01\nb: 22:30\nc: '1'", [{"a": "2024-01-01", "b": "22:30", "c": "1"}]),
        (
            "a: 1e3\nb: 010\nc: 0x1F\nd: 1_000\ne: -1.5",
            [{"a": 1000.0, "b": 8, "c": 31, "d": 1000, "e": -1.5}],
        ),
        ("a: !!str 5\nb: v1.0\nc: -x\nd: .", [{"a": "5", "b": "v1.0", "c": "-x", "d": "."}]),
        ("a: 1\r\nb: |\r\n  x\r\n", [{"a": 1, "b": "x\n"}]),
        ("a: 1\n---\n---\n# nothing\n---\nb: 2\n", [{"a": 1}, {"b": 2}]),
        ("\ufeffa: 1", [{"a": 1}]),
        ("", []),
        ("# only a comment", []),
        ("{a: 1}", [{"a": 1}]),
        ('{"a": 1}', [{"a": 1}]),
        ('{"a": 1}\n{"b": 2}', [{"a": 1}, {"b": 2}]),
        ('[{"a": 1}]', [[{"a": 1}]]),
        (
            "base: &b {x: 1}\nuse: *b\nm:\n  <<: *b\n  y: 2",
            [{"base": {"x": 1}, "use": {"x": 1}, "m": {"x": 1, "y": 2}}],
        ),
        ("m:\n  <<: [{a: 1, b: 1}, {a: 2, c: 2}]\n  b: 3", [{"m": {"a": 1, "b": 3, "c": 2}}]),
        ("8080: a", [{"8080": "a"}]),
    ],
)
def test_read(text: str, expected: list[Any]) -> None:
    assert values(text) == expected


BOMB = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 9)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "a:\n\tb: 1",
            "x.yaml: document 1, line 2: a tab indents this line; YAML is indented with spaces only",
        ),
        (
            "a: 1\nb: 2\na: 3",
            'x.yaml: document 1, line 3: key "a" stands twice in one mapping; keep one of them',
        ),
        (b"a: 1\nb: \xff", "x.yaml: line 2: byte 0xff is not UTF-8 text; save the file as UTF-8"),
        (
            "a: 1\n---\nb: .inf",
            "x.yaml: document 2, line 3: .inf is not a JSON number; quote it if it is text",
        ),
        (
            "a: 1e999",
            "x.yaml: document 1, line 1: 1e999 is too large a number; quote it if it is text",
        ),
        (
            "a: " + "9" * 50,
            "x.yaml: document 1, line 1: 99999999999999999999… is too large a number; quote it if it is text",
        ),
        ("a: !x 1", 'x.yaml: document 1, line 1: the tag "!x" is not JSON; remove the tag'),
        ("a: !x [1]", 'x.yaml: document 1, line 1: the tag "!x" is not JSON; remove the tag'),
        ("[a]: 1", "x.yaml: document 1, line 1: a key must be a string"),
        ("<<: 1", "x.yaml: document 1, line 1: << takes a mapping or a list of mappings"),
        ("a: *x", "x.yaml: document 1, line 1: not valid YAML: found undefined alias"),
        ("&a [*a]", "x.yaml: document 1, line 1: it is nested more than 100 levels deep"),
        ("[" * 5000, "x.yaml: document 1, line 1: it is nested too deeply"),
        (
            BOMB,
            "x.yaml: document 1, line 1: the document has more than 200,000 values once its aliases are expanded",
        ),
        (
            "a: b: c",
            "x.yaml: document 1, line 1: not valid YAML: mapping values are not allowed in this context",
        ),
        ("a: 1\n---\nb: [", "x.yaml: document 2, line 3: not valid YAML: "),
        ("\0", "x.yaml: document 1, line 1: not valid YAML: control characters are not allowed"),
        ('{"a": 1, "a": 2}', 'x.yaml: document 1, line 1: key "a" stands twice in one object'),
        ('{"a": "\\ud800"}', "x.yaml: document 1, line 1: a string holds half of a surrogate pair"),
        (
            '{"a":' * 150 + "1" + "}" * 150,
            "x.yaml: document 1, line 1: it is nested more than 100 levels deep",
        ),
        ('{"a": NaN}', "x.yaml: document 1, line 1: NaN is not a JSON number"),
        ('{"a": 1}\n{"b": }', "x.yaml: document 2, line 2: not valid JSON: Expecting value"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_refused(text: str | bytes, message: str) -> None:
    with pytest.raises(UnreadableInput) as caught:
        values(text)
    assert str(caught.value).startswith(message)


def test_a_json_file_is_not_taken_for_yaml() -> None:
    with pytest.raises(UnreadableInput, match="not valid JSON"):
        values("{a: 1}", "x.json")
    with pytest.raises(UnreadableInput, match="nested too deeply"):
        values('{"a":' * 100_000, "x.json")


def test_places_of_fields() -> None:
    (document,) = read_documents(b"a:\n  b:\n    - x\n    - y: 1\n", "f.yaml")
    assert document.where == "f.yaml: document 1, line 1"
    assert document.where_of(("a", "b", 1, "y")) == "f.yaml: document 1, line 4"
    assert document.where_of(("a", "b", 7)) == "f.yaml: document 1, line 3"
    assert document.where_of(("z",)) == "f.yaml: document 1, line 1"


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.text(max_size=12)
    | st.sampled_from(
        [
            "yes",
            "1e3",
            "010",
            "y",
            "0x1f",
            "22:30",
            ".inf",
            "~",
            "",
            "2024-01-01",
            "1_0",
            "a\nb",
            "a\n",
            " x",
        ]
    ),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(min_size=1, max_size=6), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(json_values)
def test_what_is_written_is_read_back(value: Any) -> None:
    wrapped = {"value": value}
    text = to_yaml([wrapped])
    try:
        text.encode()
    except UnicodeEncodeError:
        return
    assert values(text) == [wrapped]


@given(st.text(max_size=60))
def test_no_text_gives_a_traceback(text: str) -> None:
    try:
        data = text.encode()
    except UnicodeEncodeError:
        return
    try:
        list(read_documents(data, "x.yaml"))
    except UnreadableInput as error:
        assert error.problems[0].where.startswith("x.yaml: ")
