"""Health, readiness and metrics. Not retried, so that the response shows the present state."""

from __future__ import annotations

from evenmatch.client.call import Call
from evenmatch.client.operation import operation
from evenmatch.http.models.jobs import Health


class Monitoring:
    """Health, readiness and metrics for monitoring."""

    @operation
    def health(self) -> Call[Health]:
        """Check that the process is running."""
        return Call("GET", "/healthz", Health.model_validate_json, once=True)

    @operation
    def ready(self) -> Call[Health]:
        """Check that the service can use its database. Raises ProblemError with status 503 if not."""
        return Call("GET", "/readyz", Health.model_validate_json, once=True)

    @operation
    def metrics(self) -> Call[str]:
        """The metrics of the responding process, in the Prometheus text format."""
        return Call("GET", "/metrics", bytes.decode, once=True)
