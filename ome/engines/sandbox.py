"""Templates of plugins, rendered in Jinja2's sandbox within bounds.

A template sees the values it is given and nothing else: it loads no other template, reads no attribute
that could lead out, changes nothing. Its steps and everything that it writes or joins are counted, so that
one that never ends or grows without end is stopped.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from jinja2 import StrictUndefined, TemplateError, TemplateSyntaxError, Undefined, nodes
from jinja2.filters import FILTERS
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import pass_context
from jinja2.visitor import NodeTransformer

__all__ = ["MAX_OUTPUT", "MAX_STEPS", "MAX_TEMPLATE", "TemplateFailed", "TemplateRefuses", "render"]

MAX_TEMPLATE: Final = 32 * 1024
MAX_OUTPUT: Final = 256 * 1024
# Rounds of loops and calls of macros and functions, all together.
MAX_STEPS: Final = 1_000
_MAX_NUMBER: Final = 2**53
_KEPT_FILTERS: Final = "d default first int last length list lower sort string trim upper".split()


class TemplateFailed(Exception):
    """A template can't be rendered; the message says why."""


def render(template: str, values: Mapping[str, Any]) -> str:
    """What a template gives for the values. Raises TemplateFailed, whatever goes wrong."""
    try:
        return _Sandbox().write(template, values)
    except TemplateFailed:
        raise
    except TemplateSyntaxError as error:
        raise TemplateFailed(f"line {error.lineno} of the template: {error.message}") from None
    except TemplateError as error:
        raise TemplateFailed(error.message or type(error).__name__) from None
    except RecursionError:
        raise TemplateFailed("it is nested too deeply") from None
    except Exception as error:  # a template is a stranger's, and may fail in any way
        raise TemplateFailed(f"{type(error).__name__}: {error}") from None


class TemplateRefuses(TemplateFailed):
    """A template calls `fail`: the values don't go together."""


class _Bounded(NodeTransformer):
    """Has rounds of loops and joined texts counted, which the sandbox itself doesn't see."""

    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        node.iter = _through("counted", node.iter)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        return _through("join", nodes.List(node.nodes))


def _through(name: str, node: Any) -> nodes.Filter:
    return nodes.Filter(node, name, [], [], None, None)


class _Sandbox(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset("+ - * / // % **".split())

    def __init__(self) -> None:
        super().__init__(
            undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=_counted_text
        )
        own: dict[str, Callable[..., Any]] = {
            "counted": self._counted,
            "join": self._join,
            "tojson": self._to_json,
        }
        self.filters = {name: FILTERS[name] for name in _KEPT_FILTERS} | own
        self.globals = {"range": self._range, "fail": _fail}
        self._steps = 0
        self._written = 0

    def write(self, template: str, values: Mapping[str, Any]) -> str:
        tree = _Bounded().visit(self.parse(template))
        parts: list[str] = []
        size = 0
        for part in self.from_string(tree).generate(**values):
            size += len(part)
            if size > MAX_OUTPUT:
                raise _too_long()
            parts.append(part)
        return "".join(parts)

    def step(self, count: int = 1) -> None:
        self._steps += count
        if self._steps > MAX_STEPS:
            raise TemplateFailed(f"it takes more than {MAX_STEPS:,} steps")

    def written(self, text: str) -> str:
        self._written += len(text)
        if self._written > MAX_OUTPUT:
            raise _too_long()
        return text

    def call(self, context: Context, called: Any, /, *args: Any, **named: Any) -> Any:
        self.step()
        return super().call(context, called, *args, **named)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Arithmetic, on numbers that stay numbers."""
        for side in (left, right):
            if not isinstance(side, int | float):
                raise TemplateFailed(f"{operator} takes numbers; texts are joined by ~")
        if operator == "**":
            raise TemplateFailed("** isn't there")
        result = super().call_binop(context, operator, left, right)
        if abs(result) > _MAX_NUMBER:
            raise TemplateFailed("a number grows too large")
        return result

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """None of texts, whose methods can grow them without being counted."""
        return not isinstance(obj, str | bytes) and super().is_safe_attribute(obj, attr, value)

    def _counted(self, items: Iterable[Any]) -> Iterator[Any]:
        for item in items:
            self.step()
            yield item

    def _range(self, *bounds: int) -> range:
        found = range(*bounds)
        if found[MAX_STEPS:]:
            self.step(MAX_STEPS + 1)
        return found

    def _join(self, items: Iterable[Any], separator: str = "") -> str:
        texts: list[str] = []
        for item in items:
            texts += [self.written(separator), self.written(str(item))]
        return "".join(texts[1:])

    def _to_json(self, value: Any) -> str:
        return self.written(json.dumps(self._plain(value), ensure_ascii=False))

    def _plain(self, value: Any) -> Any:
        """JSON data, visited step by step: a value that holds itself many times over ends here."""
        if isinstance(value, Undefined):
            str(value)  # says which name is undefined
        if isinstance(value, dict):
            self.step(len(value))
            return {str(key): self._plain(item) for key, item in value.items()}
        if isinstance(value, list | tuple | range):
            self.step(len(value))
            return [self._plain(item) for item in value]
        return value


@pass_context
def _counted_text(context: Context, value: Any) -> str:
    sandbox = context.environment
    assert isinstance(sandbox, _Sandbox)
    return sandbox.written(str(value))


def _fail(message: Any = "") -> None:
    """Lets a template refuse its parameters."""
    raise TemplateRefuses(str(message))


def _too_long() -> TemplateFailed:
    return TemplateFailed(f"it gives more than {MAX_OUTPUT:,} characters")
