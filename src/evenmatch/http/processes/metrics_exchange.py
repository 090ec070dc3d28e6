"""The figures of all serving processes in one scrape, each with the number of its process.

Each process answers at a socket in the private folder; the one that is scraped asks the others. A label, not a sum:
counters begin at zero when a process is replaced, which Prometheus sees in each series by itself, and not in their sum.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from evenmatch.http.logs import log
from evenmatch.http.processes.group import ProcessGroup

WITHIN = 1.0  # seconds in which another process must answer; a frozen one is left out
LABEL = "worker"
OF_PROCESS, OF_SERVICE = b"p", b"s"  # the figures that another process is asked for
Family = tuple[str, str, str, list[tuple[str, dict[str, str], float]]]  # name, meaning, kind, samples


class MetricsExchange(Collector):
    """Answers other processes with the figures of this one, and collects those of all.

    Figures of the service are those of the process with the lowest number: some are counted from its start on.
    """

    def __init__(self, group: ProcessGroup, own: Collector, of_service: Collector) -> None:
        self._group, self._own, self._of_service = group, own, of_service
        self._listening = socket.socket(socket.AF_UNIX)
        group.socket.unlink(missing_ok=True)
        self._listening.bind(str(group.socket))
        self._listening.listen(16)
        threading.Thread(target=self._answer, name="evenmatch-metrics", daemon=True).start()

    def close(self) -> None:
        """Answer no more."""
        self._group.socket.unlink(missing_ok=True)
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _answer(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:  # it was closed
                return
            with connection, suppress(OSError):
                connection.settimeout(WITHIN)
                wanted = self._of_service if connection.recv(1) == OF_SERVICE else self._own
                connection.sendall(json.dumps(_families(wanted)).encode())

    def collect(self) -> Iterable[Metric]:
        """The figures of all processes, and which of them answered."""
        numbers = {path: int(path.name.partition("-")[0]) for path in sorted(self._group.sockets.iterdir())}
        others = [path for path in numbers if path != self._group.socket]
        with ThreadPoolExecutor(max(1, len(others))) as threads:
            asked = list(zip(others, threads.map(_ask, others), strict=True))
        answers: list[tuple[int | None, list[Family]]] = [(self._group.number, _families(self._own))]
        answers += [(numbers[path], families) for path, families in asked if families is not None]
        yield from _merged(answers)
        up = GaugeMetricFamily("evenmatch_worker_up", "1 if the serving process answered this scrape.", labels=(LABEL,))
        present = {number for number, _ in answers if number is not None}
        for number in range(1, self._group.count + 1):
            up.add_metric((str(number),), float(number in present))
        yield up
        first = min(present)
        lowest = None if first == self._group.number else next(path for path in others if numbers[path] == first)
        of_service = None if lowest is None else _ask(lowest, OF_SERVICE)
        yield from _merged([(None, _families(self._of_service) if of_service is None else of_service)])


def _families(registry: Collector) -> list[Family]:
    return [
        (
            metric.name,
            metric.documentation,
            metric.type,
            [(sample.name, dict(sample.labels), float(sample.value)) for sample in metric.samples],
        )
        for metric in registry.collect()
    ]


def _ask(path: Path, wanted: bytes = OF_PROCESS) -> list[Family] | None:
    """The figures of another process; None: it does not answer."""
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(WITHIN)
            connection.connect(str(path))
            connection.sendall(wanted)
            pieces = []
            while piece := connection.recv(1 << 18):
                pieces.append(piece)
    except OSError as error:
        log.warning("a serving process does not answer", socket=path.name, error=str(error))
        return None
    families: list[Family] = json.loads(b"".join(pieces))
    return families


def _merged(answers: Iterable[tuple[int | None, list[Family]]]) -> Iterable[Metric]:
    """The metrics of several processes by name, with the number of the process as a label; None: without one."""
    by_name: dict[str, Metric] = {}
    for number, families in answers:
        for name, meaning, kind, samples in families:
            metric = by_name.setdefault(name, Metric(name, meaning, kind))
            for sample, labels, value in samples:
                metric.add_sample(sample, labels if number is None else {**labels, LABEL: str(number)}, value)
    return by_name.values()
