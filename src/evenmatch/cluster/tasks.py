"""Run tasks on a cluster, in order and with a bound on how many wait."""

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
    """Pickle a value. names: the systems that occur in it, as every node finds them."""
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


RETRIES = 3  # of a task whose worker is lost
WAITING = 2  # tasks handed to Ray per worker: one runs and one waits

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
    """Run all jobs on the cluster and return their results in the same order.

    function  from a module of evenmatch. It must be repeatable: if its worker is lost, the task starts over
    progress  called with the number of jobs done and the last result
    Raises the first error of a task, prefixed with the job's name, and cancels the other tasks. Raises ClusterError if
    a task loses its worker for the fourth time, or if a worker differs from this machine.
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
    """Starts tasks on a cluster and reads their results."""

    def __init__(self, ray: ModuleType, cluster: Cluster) -> None:
        self._ray, self._cluster = ray, cluster
        self._remote = remote(
            ray, worker.run, num_cpus=1, max_retries=RETRIES, retry_exceptions=False, scheduling_strategy="SPREAD"
        )

    def start(self, function: Callable[..., object], arguments: Sequence[object]) -> Any:  # noqa: ANN401 - Ray's
        """Start a task. The worker reads a `Shared` at the end of the arguments from the object store."""
        shared = [argument.reference for argument in arguments if isinstance(argument, Shared)]
        own = tuple(argument for argument in arguments if not isinstance(argument, Shared))
        cluster = self._cluster
        return self._remote.remote(cluster.expected, cluster.systems, packed((function, own), cluster.systems), shared)

    def result(self, reference: Any, name: str) -> Any:  # noqa: ANN401
        """Return the result of a finished task."""
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
    """A value in the object store of a cluster, which each node holds once for all its tasks."""

    reference: Any


class ClusterExecutor(Executor):
    """The workers of a cluster as an executor, for backtests and tuning."""

    def __init__(self, cluster: Cluster) -> None:
        self._ray, self.workers = _ray(), cluster.workers
        self._task = _Task(self._ray, cluster)
        self._running: dict[Any, Future[Any]] = {}

    def share(self, value: object) -> Shared:
        """Put a large value into the object store, to pass it as the last argument of `submit`."""
        return Shared(self._ray.put(value))

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Start a task. The future raises the function's own error, or ClusterError."""
        assert not kwargs, "arguments are sent by position"
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()
        reference = self._task.start(fn, args)
        self._running[reference] = future
        reference.future().add_done_callback(lambda _: self._settle(reference, fn.__name__))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Cancel the tasks that are still running, if asked to."""
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
    """Yield an executor; its tasks are cancelled if the block raises."""
    executor = ClusterExecutor(cluster)
    try:
        yield executor
    except BaseException:
        executor.shutdown(wait=False, cancel_futures=True)
        raise


def named(error: EvenmatchError, name: str) -> EvenmatchError:
    """Prefix the message of an error with the name of the job."""
    error.args = (f"{name}: {error}", *error.args[1:])
    return error


def _ray() -> ModuleType:
    import ray

    return ray
