"""Functions and arguments as bytes for workers: rating systems travel by name, kernels are compiled where they run."""

from __future__ import annotations

import io
import pickle
from collections.abc import Mapping, Sequence
from typing import Any

from evenmatch import systems
from evenmatch.options import Value
from evenmatch.systems.system import Rules, System


def packed(value: object, names: Sequence[str]) -> bytes:
    """A value as bytes. names: of all systems that occur in it, as `systems.find` takes them on every node."""
    target = io.BytesIO()
    _Packer(target, {systems.find(name): name for name in names}).dump(value)
    return target.getvalue()


class _Packer(pickle.Pickler):
    def __init__(self, target: io.BytesIO, names: Mapping[System, str]) -> None:
        super().__init__(target, protocol=5)
        self._names = names

    def reducer_override(self, value: object) -> Any:  # noqa: ANN401 - what pickle takes
        """Systems and rules by name and values; everything else as usual."""
        if isinstance(value, System):
            return systems.find, (self._names[value],)
        if isinstance(value, Rules):
            return rules_of, (self._names[value.system], value.preset, value.values())
        return NotImplemented


def rules_of(name: str, preset: str | None, values: Mapping[str, Value]) -> Rules:
    """The same rules in another process."""
    system = systems.find(name)
    return Rules(system, Rules.of(system, None, **values).parameters, preset)
