"""A process that runs the matchmaker of its share of the ladders until it is killed."""

import threading
from multiprocessing.connection import Connection

from evenmatch.operations.service import Service
from evenmatch.queues.matchmaker import Matchmaker
from evenmatch.queues.queue_service import QueueService


def run_matchmaker(url: str, pipe: Connection) -> None:
    with Service.open(url) as service:
        queue_service = QueueService(service)
        pipe.send(queue_service.leases.owner)
        Matchmaker(queue_service).run(threading.Event())
