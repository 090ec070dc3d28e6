"""Requests that the service answers by a job: the client waits for it, shows its progress and returns its result."""

import asyncio
import json

import httpx
import pytest

from evenmatch.client import AsyncClient, Client, ProblemError
from evenmatch.client.models import RulesChange, VoidRequest

VOID = VoidRequest(match_id="m1", id="v1")
RESULT = {"told": "match 'm1' is void", "there_already": False, "preview": False, "effect": None}
EFFECT = {"players": 3, "matches": 2, "left_out": 0, "moved": 0, "moves": [], "position": 7}


def job(state, done=0, **more):
    """A job as the service shows it."""
    times = {"begun_at": "2026-11-21T18:30:00Z", "changed_at": "2026-11-21T18:30:02Z"}
    counts = {"done": done, "total": 9, "told": None, "result": None, "problems": []}
    return {"job": "job_1", "ladder": "arena", "kind": "correction", "state": state, **times, **counts, **more}


class Service:
    """Answers the first request with 202, and each question for the job with the next of its states."""

    def __init__(self, *states):
        self.states, self.asked = list(states), []

    def __call__(self, request):
        self.asked.append((request.method, request.url.path))
        body = self.states.pop(0)
        return httpx.Response(202 if len(self.asked) == 1 else 200, content=json.dumps(body).encode())


def test_a_correction_waits_for_its_job_and_shows_how_far_it_is():
    seen = []
    service = Service(job("running"), job("running", 4, ahead=1), job("done", 9, result=RESULT))
    with Client("http://s", transport=httpx.MockTransport(service), on_job=seen.append) as client:
        done = client.void_match("arena", VOID)
    assert (done.told, done.there_already) == ("match 'm1' is void", False)
    assert [(current.state, current.done, current.ahead) for current in seen] == [("running", 4, 1), ("done", 9, 0)]
    assert service.asked == [("POST", "/v1/ladders/arena/voids"), *[("GET", "/v1/jobs/job_1")] * 2]


def test_a_preview_of_rules_is_the_part_of_the_result_that_the_request_would_have_had():
    async def run():
        service = Service(job("running"), job("done", 9, result={**RESULT, "preview": True, "effect": EFFECT}))
        async with AsyncClient("http://s", transport=httpx.MockTransport(service)) as client:
            return await client.preview_rules("arena", RulesChange(parameters={"k": 10}))

    assert asyncio.run(run()).matches == 2


@pytest.mark.parametrize(
    ("ended", "told"),
    [
        (job("failed", told="it cannot be", problems=[{"where": "m7", "reason": "three teams"}]), "it cannot be"),
        (job("cancelled", told="cancelled; nothing was changed"), "is cancelled"),
    ],
)
def test_a_job_without_a_result_is_an_error_that_says_why(ended, told):
    service = Service(job("running"), ended)
    with (
        Client("http://s", transport=httpx.MockTransport(service)) as client,
        pytest.raises(ProblemError, match=told) as refused,
    ):
        client.void_match("arena", VOID)
    assert (refused.value.status, refused.value.passes) == (409, False)
    assert bool(refused.value.problem.problems) == bool(ended["problems"])
