"""What the pages of one process share."""

from __future__ import annotations

from dataclasses import dataclass, field

from evenmatch.http.site import Site
from evenmatch.service.reading import Reading
from evenmatch.web.bench import Bench
from evenmatch.web.pulses import Pulses


@dataclass(frozen=True)
class Shared:
    """The use cases, who watches what, and questions that nobody waits long for."""

    site: Site
    pulses: Pulses
    reading: Reading
    bench: Bench = field(default_factory=Bench)

    @classmethod
    def over(cls, site: Site) -> Shared:
        """What pages need beside the use cases."""
        return cls(site, Pulses(site), Reading(site.service, site.service.shown_view))
