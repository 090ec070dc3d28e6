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
Family = tuple[str, str, str, list[tuple[str, dict[str, str], float]]]  # name, meaning, kind, samples


class MetricsExchange(Collector):
    """Answers other processes with the figures of this one, and collects those of all."""

    def __init__(self, group: ProcessGroup, own: Collector) -> None:
        self._group, self._own = group, own
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
                connection.sendall(json.dumps(_families(self._own)).encode())

    def collect(self) -> Iterable[Metric]:
        """The figures of all processes, and which of them answered."""
        numbers = {path: int(path.name.partition("-")[0]) for path in sorted(self._group.sockets.iterdir())}
        others = [path for path in numbers if path != self._group.socket]
        with ThreadPoolExecutor(max(1, len(others))) as threads:
            asked = list(zip(others, threads.map(_ask, others), strict=True))
        answers = [(self._group.number, _families(self._own))]
        answers += [(numbers[path], families) for path, families in asked if families is not None]
        yield from _merged(answers)
        up = GaugeMetricFamily("evenmatch_worker_up", "1 if the serving process answered this scrape.", labels=(LABEL,))
        present = {number for number, _ in answers}
        for number in range(1, self._group.count + 1):
            up.add_metric((str(number),), float(number in present))
        yield up


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


def _ask(path: Path) -> list[Family] | None:
    """The figures of another process; None: it does not answer."""
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(WITHIN)
            connection.connect(str(path))
            pieces = []
            while piece := connection.recv(1 << 18):
                pieces.append(piece)
    except OSError as error:
        log.warning("a serving process does not answer", socket=path.name, error=str(error))
        return None
    families: list[Family] = json.loads(b"".join(pieces))
    return families


def _merged(answers: Iterable[tuple[int, list[Family]]]) -> Iterable[Metric]:
    """The metrics of several processes by name, with the number of the process as a label."""
    by_name: dict[str, Metric] = {}
    for number, families in answers:
        for name, meaning, kind, samples in families:
            metric = by_name.setdefault(name, Metric(name, meaning, kind))
            for sample, labels, value in samples:
                metric.add_sample(sample, {**labels, LABEL: str(number)}, value)
    return by_name.values()
