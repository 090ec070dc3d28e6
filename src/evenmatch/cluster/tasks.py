"""Tasks of a cluster: many in order, with a bound on how many wait; how tasks and results travel."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from types import ModuleType
from typing import Any, NamedTuple, ParamSpec, TypeVar

from evenmatch import systems
from evenmatch.cluster import worker
from evenmatch.cluster.connection import Cluster, differences, refusal, remote
from evenmatch.errors import ClusterError, EvenmatchError
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


RETRIES = 3  # of a task whose worker was lost
WAITING = 2  # tasks for each worker that are handed to Ray: one that runs, one that follows

T = TypeVar("T")
P = ParamSpec("P")


class NamedTask(NamedTuple):
    """The arguments of one task. name: for messages, for example "ladder 'duel'"."""

    name: str
    arguments: tuple[object, ...]


def run_jobs(
    cluster: Cluster,
    function: Callable[..., T],
    jobs: Sequence[NamedTask],
    progress: Callable[[int, T], None] | None = None,
) -> list[T]:
    """Do all jobs on the cluster, and return their results in the order of the jobs.

    function  of a module of evenmatch. A task whose worker is lost is done again from its beginning, so it must be one
              that can be repeated
    progress  called with the number of jobs done and the last result
    Raises the first error of a task, its message beginning with the job's name, and gives up all others; ClusterError
    if the worker of a task is lost for the fourth time, or is not like this machine.
    """
    ray = _ray()
    task = _Task(ray, cluster)
    results: dict[int, T] = {}
    running: dict[Any, int] = {}
    waiting = iter(enumerate(jobs))
    try:
        while True:
            while len(running) < WAITING * cluster.workers and (following := next(waiting, None)) is not None:
                index, job = following
                running[task.start(function, job.arguments)] = index
            if not running:
                return [results[index] for index in range(len(jobs))]
            done, _ = ray.wait(list(running), num_returns=1)
            index = running.pop(done[0])
            results[index] = task.result(done[0], jobs[index].name)
            if progress is not None:
                progress(len(results), results[index])
    finally:
        for left in running:
            ray.cancel(left, force=True)


class _Task:
    """Starts tasks on a cluster and reads what became of them."""

    def __init__(self, ray: ModuleType, cluster: Cluster) -> None:
        self._ray, self._cluster = ray, cluster
        self._remote = remote(
            ray, worker.run, num_cpus=1, max_retries=RETRIES, retry_exceptions=False, scheduling_strategy="SPREAD"
        )

    def start(self, function: Callable[..., object], arguments: Sequence[object]) -> Any:  # noqa: ANN401 - Ray's
        """Start a task; a `Shared` at the end of the arguments is read from the object store by the worker."""
        shared = [argument.reference for argument in arguments if isinstance(argument, Shared)]
        own = tuple(argument for argument in arguments if not isinstance(argument, Shared))
        cluster = self._cluster
        return self._remote.remote(cluster.expected, cluster.systems, packed((function, own), cluster.systems), shared)

    def result(self, reference: Any, name: str) -> Any:  # noqa: ANN401
        """The result of a task that ended."""
        exceptions = self._ray.exceptions
        try:
            kind, value = self._ray.get(reference)
        except exceptions.RayTaskError as error:
            raise error.cause or error from None
        except exceptions.RayError as error:
            first = next(iter(str(error).strip().splitlines()), "")
            raise ClusterError(
                f"{name}: its worker was lost {RETRIES + 1} times, at last by {type(error).__name__}: {first}"
            ) from error
        if kind == worker.DONE:
            return value
        if kind == worker.REFUSED:
            raise ClusterError(refusal(differences(value, self._cluster.expected)))
        assert isinstance(value, EvenmatchError)
        raise named(value, name)


class Shared(NamedTuple):
    """A value in the object store of a cluster: each node has it once, however many tasks read it."""

    reference: Any


class ClusterExecutor(Executor):
    """The workers of a cluster, for the lab: they call functions of evenmatch's modules."""

    def __init__(self, cluster: Cluster) -> None:
        self._ray, self.workers = _ray(), cluster.workers
        self._task = _Task(self._ray, cluster)
        self._running: dict[Any, Future[Any]] = {}

    def share(self, value: object) -> Shared:
        """Put a large value into the object store; as the last argument of `submit`, tasks read it there."""
        return Shared(self._ray.put(value))

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Start a task. The future raises what the function raises, or ClusterError."""
        assert not kwargs, "arguments are sent by position"
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()
        reference = self._task.start(fn, args)
        self._running[reference] = future
        reference.future().add_done_callback(lambda _: self._settle(reference, fn.__name__))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Give up what still runs."""
        for reference in list(self._running):
            if cancel_futures or not wait:
                self._ray.cancel(reference, force=True)

    def _settle(self, reference: Any, name: str) -> None:  # noqa: ANN401
        future = self._running.pop(reference)
        try:
            future.set_result(self._task.result(reference, name))
        except BaseException as error:
            future.set_exception(error)


@contextmanager
def executor_of(cluster: Cluster) -> Iterator[ClusterExecutor]:
    """An executor whose tasks are given up when the block ends by an error."""
    executor = ClusterExecutor(cluster)
    try:
        yield executor
    except BaseException:
        executor.shutdown(wait=False, cancel_futures=True)
        raise


def named(error: EvenmatchError, name: str) -> EvenmatchError:
    """The same error with the job's name before its message."""
    error.args = (f"{name}: {error}", *error.args[1:])
    return error


def _ray() -> ModuleType:
    import ray

    return ray
