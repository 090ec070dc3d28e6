"""What matches are rated by, loaded beside the requests before the first match comes."""

from __future__ import annotations

import threading

from evenmatch.errors import EvenmatchError
from evenmatch.http.logs import log
from evenmatch.service.loading import load_kernels
from evenmatch.service.service import Service


class Kernels:
    """Those of one process."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._loaded: set[str] = set()
        self._turn = threading.Lock()
        self._begun = False

    def begin(self) -> None:
        """Load those of all ladders in a thread; where that was never done on this machine, they are compiled."""
        self._begun = True
        self.follow()

    def follow(self) -> None:
        """Load those of ladders that were made since; nothing where `begin` was never called."""
        if not self._begun:
            return
        threading.Thread(target=self._load, name="evenmatch-kernels", daemon=True).start()

    def _load(self) -> None:
        with self._turn:
            try:
                for system in load_kernels(self._service, self._loaded):
                    log.info("loading kernels", system=system, told="the first time, they are compiled")
            except EvenmatchError as error:
                log.warning("kernels", error=str(error))
