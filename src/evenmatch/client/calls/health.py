"""Whether the service lives and can serve. Asked once: who wants to know wants it as it is now."""

from __future__ import annotations

from evenmatch.client.call import Call
from evenmatch.client.operation import operation
from evenmatch.http.models.health import Health


class Monitoring:
    """What monitors ask."""

    @operation
    def health(self) -> Call[Health]:
        """The process lives."""
        return Call("GET", "/healthz", Health.model_validate_json)

    @operation
    def ready(self) -> Call[Health]:
        """It can serve: the database answers. Raises ProblemError with status 503 where it cannot."""
        return Call("GET", "/readyz", Health.model_validate_json)

    @operation
    def metrics(self) -> Call[str]:
        """The figures of the process that answers, as Prometheus reads them."""
        return Call("GET", "/metrics", bytes.decode)
