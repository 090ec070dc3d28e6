"""Queues whose policy is fitted to their players, over HTTP: how they are set up, and what is shown of the last fit."""

import time

import pytest

from evenmatch import rules
from evenmatch.http.server import matchmaking
from evenmatch.queues.policy_fits import AutoPolicies, job_kind

QUEUE = "/v1/ladders/duel/queues/ranked"


@pytest.fixture
def ladder(service):
    return service.create_ladder("duel", "elo", rules("elo")).name


def test_a_queue_is_set_to_auto_and_shows_its_last_fit(admin, site, ladder):
    made = admin.put(QUEUE, json={"policy": {"preset": "auto", "team_size": 2}, "rules": {"auto_within": 60}})
    assert made.status_code == 200, made.text
    told = made.json()
    assert (told["rules"]["auto_within"], told["rules"]["auto_share"], told["fit"]) == (60.0, 0.9, None)
    assert (told["policy"]["even_spread"], told["policy"]["team_size"]) == (4.5, 2)  # balanced, to begin with
    auto = AutoPolicies(site.queue_service, site.jobs)
    site.jobs.begin(job_kind("ranked"), ladder, lambda progress: auto.refit(ladder, "ranked", progress))
    for _ in range(200):
        if (shown := admin.get(QUEUE).json()["fit"]) is not None:
            break
        time.sleep(0.05)
    assert shown["adopted"] is False
    assert "0 players joined queue 'ranked' in the last day" in shown["explanation"][0]
    admin.put(QUEUE, json={"policy": {"preset": "quick"}})
    assert admin.get(QUEUE).json()["fit"] is None


def test_a_target_out_of_range_is_refused(admin, ladder):
    refused = admin.put(QUEUE, json={"policy": {"preset": "auto"}, "rules": {"auto_within": 1}})
    assert refused.status_code == 422
    assert "auto_within" in refused.text


def test_the_process_of_the_matchmaker_fits_policies(site):
    assert "policies" in [name for name, _ in matchmaking(site)]
