"""Templates of plugins: what they can do, and what stops those that go wrong."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ome.engines.sandbox import MAX_OUTPUT, MAX_TEMPLATE, TemplateFailed, render

VALUES = {"text": 'ü "1"', "port": 30000, "flag": True}


@pytest.mark.parametrize(
    ("template", "result"),
    [
        ("a: {{ port }}", "a: 30000"),
        ("{{ text }}", 'ü "1"'),
        ("{{ text | tojson }}", '"ü \\"1\\""'),
        ("{{ [port, {'a': text}, flag, (1,), range(2)] | tojson }}", None),
        ("{{ '--port=' ~ port }}", "--port=30000"),
        ("{{ [1, 2] | join('-') }}", "1-2"),
        ("{{ [] | join('-') }}", ""),
        ("{{ port + 1 }} {{ port * 2 }} {{ port // 7 % 5 }}", "30001 60000 0"),
        ("{% if flag %}\nyes\n{% endif %}\nno", "yes\nno"),
        ("{% for a in [1, 2] %}{{ loop.index }}{{ ',' if not loop.last }}{% endfor %}", "1,2"),
        ("{% for k, v in {'a': 1}.items() %}{{ k }}{{ v }}{% endfor %}", "a1"),
        ("{% for i in range(3) %}{{ i }}{% endfor %}", "012"),
        ("{% macro m(x) %}<{{ x }}>{% endmacro %}{{ m(port) }}{{ m('a') }}", "<30000><a>"),
        ("{{ none | default('x', true) | upper }}", "X"),
        ("{# nothing #}", ""),
    ],
)
def test_what_templates_can_do(template: str, result: str | None) -> None:
    if result is None:
        assert json.loads(render(template, VALUES)) == [30000, {"a": 'ü "1"'}, True, [1], [0, 1]]
    else:
        assert render(template, VALUES) == result


TOO_LONG = "it gives more than 262,144 characters"
TOO_MANY = "it takes more than 1,000 steps"
NESTED = "it is nested too deeply"
DOUBLING = "{% set a %}xxxx{% endset %}" + "{% set a %}{{ a }}{{ a }}{% endset %}" * 50
SHARED = "{% set a = [1] %}" + "{% set a = [a, a] %}" * 50


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("{{ missing }}", "'missing' is undefined"),
        ("{{ missing | tojson }}", "'missing' is undefined"),
        ("{{ text.missing }}", "'str object' has no attribute 'missing'"),
        ("a\n{% if %}", "line 2 of the template: Expected an expression, got 'end of statement block'"),
        ("{% unknown %}", "line 1 of the template: Encountered unknown tag 'unknown'."),
        ("{{ text | attr('upper') }}", "line 1 of the template: No filter named 'attr'."),
        ("{{ text | format(1) }}", "line 1 of the template: No filter named 'format'."),
        ("{{ 1 / 0 }}", "ZeroDivisionError: division by zero"),
        ("{{ text() }}", "TypeError: 'str' object is not callable"),
        ("{{ fail('ports ' ~ port ~ ' clash') }}", "ports 30000 clash"),
        # Nothing of the machine is within reach.
        ("{% include 'x' %}", "TypeError: no loader for this environment specified"),
        ("{% import '/etc/passwd' as x %}", "TypeError: no loader for this environment specified"),
        ("{{ namespace }}", "'namespace' is undefined"),
        ("{{ ''.__class__.__mro__ }}", "access to attribute '__class__' of 'str' object is unsafe."),
        (
            "{{ fail.__globals__ }}",
            "access to attribute '__globals__' of 'function' object is unsafe.",
        ),
        (
            "{{ range.__self__ }}",
            "access to attribute '__self__' of 'method' object is unsafe.",
        ),
        ("{{ text.center(1) }}", "access to attribute 'center' of 'str' object is unsafe."),
        (
            "{% set a = [1] %}{{ a.append(2) }}",
            "access to attribute 'append' of 'list' object is unsafe.",
        ),
        # Nothing goes on for ever.
        ("{% for i in range(1000000000) %}{% endfor %}", TOO_MANY),
        ("{% for a in [1, 2, 3, 4] %}" * 9 + "{% endfor %}" * 9, TOO_MANY),
        ("{% for a in 'ab' %}{% for b in range(600) %}{% endfor %}{% endfor %}", TOO_MANY),
        ("{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{{ m() }}", NESTED),
        ("{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(40) }}", TOO_MANY),
        (SHARED + "{{ a | tojson }}", TOO_MANY),
        # Nothing grows without end.
        ("{% for i in range(900) %}" + "x" * 1000 + "{% endfor %}", TOO_LONG),
        (DOUBLING, TOO_LONG),
        ("{% set a = 'xxxx' %}" + "{% set a = a ~ a %}" * 50, TOO_LONG),
        ("{% set a = 'xxxx' %}" + "{% set a = [a, a] | join %}" * 50, TOO_LONG),
        ("{{ 'a' * 1000000000 }}", "* takes numbers; texts are joined by ~"),
        ("{{ [1] * 1000000000 }}", "* takes numbers; texts are joined by ~"),
        ("{{ '%0999999999d' % 1 }}", "% takes numbers; texts are joined by ~"),
        ("{{ 'a' + 'b' }}", "+ takes numbers; texts are joined by ~"),
        ("{{ 9 ** 999999999 }}", "** isn't there"),
        ("{% set a = 9999999 %}" + "{% set a = a * a %}" * 50, "a number grows too large"),
    ],
)  # fmt: skip
def test_what_stops_a_template(template: str, why: str) -> None:
    with pytest.raises(TemplateFailed) as caught:
        render(template, VALUES)
    assert str(caught.value) == why


def test_output_is_bounded_while_it_is_written() -> None:
    assert len(render("x" * MAX_OUTPUT, {})) == MAX_OUTPUT
    with pytest.raises(TemplateFailed, match="more than 262,144 characters"):
        render("x" * 10 * 2**20, {})
    assert MAX_TEMPLATE < MAX_OUTPUT


@given(st.text(alphabet="{}%#ax1 '\"[]().|~+*-\n", max_size=60))
def test_any_text_is_rendered_or_refused(template: str) -> None:
    try:
        result = render(template, {"a": "text", "x": 1})
    except TemplateFailed as failed:
        assert str(failed)
    else:
        assert isinstance(result, str)


@given(st.text())
def test_tojson_keeps_any_text(text: str) -> None:
    assert json.loads(render("{{ text | tojson }}", {"text": text})) == text
