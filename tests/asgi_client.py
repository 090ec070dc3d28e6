"""Asking an application in this process, as clients do."""

import asyncio
import threading

import httpx


class Asking:
    """Asks an application in this process, whose event loop runs in a thread of its own; for any number of threads.

    A bug is answered with 500, as it is to everybody. Answers are httpx.Response.
    """

    def __init__(self, app, headers=None):
        self.loop = self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        self._client = httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers)

    def request(self, method, address, **fields):
        """Any request, with what httpx takes beside it: json, content, params, headers."""
        return self._run(self._client.request(method, address, **fields))

    def get(self, address, **fields):
        return self.request("GET", address, **fields)

    def post(self, address, **fields):
        return self.request("POST", address, **fields)

    def put(self, address, **fields):
        return self.request("PUT", address, **fields)

    def patch(self, address, **fields):
        return self.request("PATCH", address, **fields)

    def delete(self, address, **fields):
        return self.request("DELETE", address, **fields)

    def _run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(60)

    def close(self):
        self._run(self._client.aclose())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()


COMPARED = ("content-type", "cache-control", "etag", "ratelimit-limit", "retry-after")


def check_alike(first, second):
    """Two answers say the same, but for the ids of their requests."""
    assert first.status_code == second.status_code
    if first.content:
        told, again = first.json(), second.json()
        told.pop("request_id", None)
        again.pop("request_id", None)
        assert told == again
    assert [first.headers.get(name) for name in COMPARED] == [second.headers.get(name) for name in COMPARED]
