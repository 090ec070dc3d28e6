"""Methods that are described once: they return the answer in `Client`, and are awaited in `AsyncClient`."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar, cast, overload

from evenmatch.client.call import Call
from evenmatch.client.talk import Talk, ask

P = ParamSpec("P")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Own = TypeVar("Own")


class Blocking(ABC):
    """A client whose methods return when the answer is there."""

    patience: float

    @abstractmethod
    def run(self, talk: Talk[T]) -> T:
        """What a talk comes to."""


class Awaiting(ABC):
    """A client whose methods are awaited."""

    patience: float

    @abstractmethod
    def run(self, talk: Talk[T]) -> Coroutine[object, None, T]:
        """What a talk comes to."""


class Patient(Protocol):
    """Either client, as a conversation sees it. patience: seconds for which failures are not given up."""

    patience: float


class Operation(Protocol[P, T_co]):
    """A method of both clients."""

    @overload
    def __get__(self, client: Blocking, kind: type | None = None) -> Callable[P, T_co]: ...

    @overload
    def __get__(self, client: Awaiting, kind: type | None = None) -> Callable[P, Coroutine[object, None, T_co]]: ...

    @overload
    def __get__(self, client: None, kind: type) -> Callable[..., object]: ...


def operation(describe: Callable[Concatenate[Own, P], Call[T]]) -> Operation[P, T]:
    """The method that makes the call which a function describes."""

    @wraps(describe)
    def method(self: Blocking, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.run(ask(describe(cast("Own", self), *args, **kwargs), self.patience))

    return _told(method, describe)


def conversation(talk: Callable[Concatenate[Own, P], Talk[T]]) -> Operation[P, T]:
    """The method that carries out a talk."""

    @wraps(talk)
    def method(self: Blocking, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.run(talk(cast("Own", self), *args, **kwargs))

    return _told(method, talk)


def _told(method: Callable[Concatenate[Blocking, P], T], written: Callable[..., object]) -> Operation[P, T]:
    """A method whose signature, as editors and `help` show it, names the answer instead of the call."""
    signature = inspect.signature(written)
    answer = str(signature.return_annotation).partition("[")[2].removesuffix("]")
    method.__signature__ = signature.replace(return_annotation=answer)  # type: ignore[attr-defined] # of any function
    return cast("Operation[P, T]", method)
