"""OME's objects as the controller keeps them: bytes, parsed when somebody looks.

A parsed runtime takes three times the memory of its JSON. What was looked at lately stays parsed.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Generic, TypeVar, cast

from ome.api import ApiObject, ObjectRef, parse

__all__ = ["Packed", "View"]

Object = TypeVar("Object", bound=ApiObject)


class Packed(MutableMapping[ObjectRef, Object], Generic[Object]):
    """Objects by kind, namespace and name, of which `parsed` stay parsed at most."""

    def __init__(self, parsed: int = 1024) -> None:
        self._bytes: dict[ObjectRef, bytes] = {}
        self._parsed: OrderedDict[ObjectRef, Object] = OrderedDict()
        self._most = parsed

    def __getitem__(self, ref: ObjectRef) -> Object:
        found = self._parsed.get(ref)
        if found is not None:
            self._parsed.move_to_end(ref)
            return found
        found = cast(Object, parse(json.loads(self._bytes[ref])))
        self._keep(ref, found)
        return found

    def __setitem__(self, ref: ObjectRef, item: Object) -> None:
        self._bytes[ref] = json.dumps(item.raw, separators=(",", ":"), ensure_ascii=False).encode()
        self._keep(ref, item)

    def __delitem__(self, ref: ObjectRef) -> None:
        del self._bytes[ref]
        self._parsed.pop(ref, None)

    def __contains__(self, ref: object) -> bool:
        return ref in self._bytes

    def __iter__(self) -> Iterator[ObjectRef]:
        return iter(self._bytes)

    def __len__(self) -> int:
        return len(self._bytes)

    def _keep(self, ref: ObjectRef, item: Object) -> None:
        self._parsed[ref] = item
        self._parsed.move_to_end(ref)
        if len(self._parsed) > self._most:
            self._parsed.popitem(last=False)


class View(Mapping[tuple[str, str], ApiObject]):
    """The objects of one kind by namespace and name, as a snapshot holds them.

    Names that are looked up go into `looked_up`, whether or not they are there: a plan depends on them.
    """

    def __init__(
        self,
        packed: Mapping[ObjectRef, ApiObject],
        kind: type[ApiObject],
        looked_up: set[ObjectRef] | None = None,
    ) -> None:
        self._packed = packed
        self._kind = kind.KIND
        self._looked_up = looked_up

    def __getitem__(self, key: tuple[str, str]) -> ApiObject:
        ref = ObjectRef(self._kind, *key)
        if self._looked_up is not None:
            self._looked_up.add(ref)
        return self._packed[ref]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return ((ref.namespace, ref.name) for ref in self._packed if ref.kind == self._kind)

    def __len__(self) -> int:
        return sum(ref.kind == self._kind for ref in self._packed)
