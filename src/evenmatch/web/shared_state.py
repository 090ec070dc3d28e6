"""The state that the pages of one process share."""

from __future__ import annotations

from dataclasses import dataclass, field

from evenmatch.http.site import Site
from evenmatch.service.queries.ladder_queries import LadderQueries
from evenmatch.web.change_stream import ChangeStream
from evenmatch.web.lab_cache import LabCache


@dataclass(frozen=True)
class SharedState:
    """The services, the open change streams, the queries and the lab cache."""

    site: Site
    change_stream: ChangeStream
    reading: LadderQueries
    lab_cache: LabCache = field(default_factory=LabCache)

    @classmethod
    def over(cls, site: Site) -> SharedState:
        """Create the shared state of a site."""
        return cls(site, ChangeStream(site), LadderQueries(site.service, site.service.shown_view))
