"""Decorators for API methods that are written once: they block in `Client` and are awaited in `AsyncClient`."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar, cast, overload

from evenmatch.client.call import Call
from evenmatch.client.talk import Talk, ask
from evenmatch.http.models.jobs import JobOut

P = ParamSpec("P")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Own = TypeVar("Own")


class BlockingCaller(ABC):
    """A client whose methods block until the response has arrived."""

    patience: float
    on_job: Callable[[JobOut], None] | None

    @abstractmethod
    def run(self, talk: Talk[T]) -> T:
        """Carry out a talk and return its result."""


class AwaitingCaller(ABC):
    """A client whose methods are coroutines."""

    patience: float
    on_job: Callable[[JobOut], None] | None

    @abstractmethod
    def run(self, talk: Talk[T]) -> Coroutine[object, None, T]:
        """Carry out a talk and return its result."""


class Patient(Protocol):
    """Either client, as `conversation` functions use it.

    patience  seconds during which failed requests are retried;  on_job  is called with the job that is waited for
    """

    patience: float
    on_job: Callable[[JobOut], None] | None


class Operation(Protocol[P, T_co]):
    """A method of both clients."""

    @overload
    def __get__(self, client: BlockingCaller, kind: type | None = None) -> Callable[P, T_co]: ...

    @overload
    def __get__(
        self, client: AwaitingCaller, kind: type | None = None
    ) -> Callable[P, Coroutine[object, None, T_co]]: ...

    @overload
    def __get__(self, client: None, kind: type) -> Callable[..., object]: ...


def operation(describe: Callable[Concatenate[Own, P], Call[T]]) -> Operation[P, T]:
    """Turn a function that returns a Call into a method that makes this call."""

    @wraps(describe)
    def method(self: BlockingCaller, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.run(ask(describe(cast("Own", self), *args, **kwargs), self.patience, self.on_job))

    return _with_signature(method, describe)


def conversation(talk: Callable[Concatenate[Own, P], Talk[T]]) -> Operation[P, T]:
    """Turn a generator function of a talk into a method that carries the talk out."""

    @wraps(talk)
    def method(self: BlockingCaller, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.run(talk(cast("Own", self), *args, **kwargs))

    return _with_signature(method, talk)


def _with_signature(
    method: Callable[Concatenate[BlockingCaller, P], T], source: Callable[..., object]
) -> Operation[P, T]:
    """Give a method the signature that editors and `help` show: its return type is the response, not the Call."""
    signature = inspect.signature(source)
    returned = str(signature.return_annotation).partition("[")[2].removesuffix("]")
    method.__signature__ = signature.replace(return_annotation=returned)  # type: ignore[attr-defined] # of any function
    return cast("Operation[P, T]", method)
