"""Queues on the operators' pages: created, changed after a preview, and deleted, by the real service."""

import re
from html import unescape

from evenmatch import rules
from evenmatch.ladders.settings import Settings
from evenmatch.queues.requests import Join, QueuedPlayer
from web_client import field, words

QUEUE = "/ladders/league/operate/queue"


def sent_again(page):
    """The values of the form that confirms a preview."""
    form = page.partition('id="preview"')[2]
    return {name: unescape(value) for name, value in re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form)}


def test_the_first_queue_is_created_on_the_pages(operator, league, site):
    assert "None yet." in words(operator.page(f"/ladders/{league}/operate"))
    assert "evenmatch queue set" not in operator.page(f"/ladders/{league}/queue")
    page = operator.page(f"{QUEUE}?name=main&preset=quick&shown_preset=quick&team_size=1&accept_within=12&look=1")
    assert site.queue_service.queues(league) == []
    assert operator.submit(QUEUE, on=f"{QUEUE}?name=main", **sent_again(page)).status_code == 303
    (queue,) = site.queue_service.queues(league)
    assert (queue.name, queue.policy.team_size, queue.rules.accept_within) == ("main", 1, 12.0)
    assert queue.policy.max_odds == 0.7  # of the preset quick
    assert "Queue main was created." in words(operator.page(f"/ladders/{league}/operate/queues"))
    entry = site.audit.page(league)[0]
    assert (entry.action, entry.target, entry.body["rules"]) == ("queue.set", "main", {"accept_within": 12.0})


def test_a_change_of_a_queue_is_shown_first_and_keeps_what_is_not_named(operator, league, site):
    site.queue_service.set_queue(league, "main", {"team_size": 1, "steps": [[0, 5], [60, 50]]})
    site.queue_service.apply(league, [Join(members=(QueuedPlayer(name="ann"),), queues=("main",))])
    page = operator.page(f"{QUEUE}?name=main&preset=&shown_preset=&max_wait=300&steps=[[0, 8]]&look=1")
    told = words(page.partition('id="preview"')[2])
    assert "Widening of the skill range [[0.0, 5.0], [60.0, 50.0]] [[0, 8]]" in told
    assert "Longest wait, s none 300" in told
    assert "1 player waits in this queue and keeps their place." in told
    assert site.queue_service.queue(league, "main").policy.max_wait is None
    operator.submit(QUEUE, on=f"{QUEUE}?name=main", **sent_again(page))
    policy = site.queue_service.queue(league, "main").policy
    assert (policy.team_size, policy.max_wait, policy.steps) == (1, 300.0, ((0.0, 8.0),))
    assert site.queue_service.counts(league)["main"].players == 1


def test_a_preset_keeps_what_describes_the_game(operator, league, site):
    site.queue_service.set_queue(league, "main", {"team_size": 3, "maps": ["docks", "mill"], "vetoes": 1})
    page = operator.page(f"{QUEUE}?name=main&preset=fair")
    assert field(page, "team_size")[0] == "3"
    assert field(page, "max_odds")[0] == "0.55"  # of the preset fair
    assert field(page, "maps")[0] == '["docks", "mill"]'


def test_a_value_that_is_not_allowed_is_refused_beside_its_field(operator, league, site):
    page = operator.page(f"{QUEUE}?name=main&preset=&shown_preset=&teams=many&look=1")
    assert field(page, "teams") == ("many", "Expected a whole number from 2 to 256, got 'many'")
    assert 'id="preview"' not in page
    refused = operator.submit(QUEUE, on=f"{QUEUE}?name=main", name="main", steps="[[5, 5]]")
    assert refused.status_code == 422
    assert "Steps do not begin at 0 seconds" in words(refused.text)
    assert site.queue_service.queues(league) == []


def test_the_most_even_map_is_refused_in_the_preview_and_kept_by_a_preset(operator, league, site):
    maps = "maps=[%22docks%22,%22mill%22]&map_choice=even"
    page = operator.page(f"{QUEUE}?name=main&preset=&shown_preset=&{maps}&look=1")
    assert "has the same odds on all maps" in words(page)
    assert 'id="preview"' not in page
    site.service.create_ladder("mapped", "even", rules("even"), Settings(context=("map",)))
    at = QUEUE.replace(league, "mapped")
    page = operator.page(f"{at}?name=main&preset=&shown_preset=&{maps}&look=1")
    assert "Choice of the map balanced even" in words(page.partition('id="preview"')[2])
    operator.submit(at, on=f"{at}?name=main", **sent_again(page))
    assert site.queue_service.queue("mapped", "main").policy.map_choice == "even"
    kept = operator.page(f"{at}?name=main&preset=fair").partition('name="map_choice"')[2]
    assert re.search("<option[^>]*selected[^>]*>", kept)[0] == '<option value="even" selected>'


def test_a_queue_is_deleted_once_its_name_was_typed(operator, league, site):
    site.queue_service.set_queue(league, "main", {"team_size": 1})
    site.queue_service.apply(league, [Join(members=(QueuedPlayer(name="ann"),), queues=("main",))])
    at = f"{QUEUE}/remove"
    assert "1 player waits in it now. Their search ends." in words(operator.page(f"{at}?name=main"))
    assert operator.submit(at, on=f"{at}?name=main", name="main", confirm="mai").status_code == 422
    assert len(site.queue_service.queues(league)) == 1
    operator.submit(at, on=f"{at}?name=main", name="main", confirm="main")
    assert site.queue_service.queues(league) == []
    assert site.audit.page(league)[0].action == "queue.removed"


def test_a_queue_is_paused_with_a_message_that_players_read_and_resumed(operator, league, site):
    site.queue_service.set_queue(league, "main", {"team_size": 1})
    (told,) = site.queue_service.apply(league, [Join(members=(QueuedPlayer(name="ann"),), queues=("main",))])
    queues, play = f"/ladders/{league}/operate/queues", f"/ladders/{league}/queue"
    assert "Find a match" in words(operator.page(play))
    operator.submit(f"{QUEUE}/pause", on=queues, name="main", do="pause", message="Back at <18:00>")
    assert "Queue main was paused." in words(operator.page(queues))
    shown = words(operator.page(play))
    assert "The queue is paused. Back at <18:00>" in shown
    assert "Find a match" not in shown
    waiting = words(operator.page(f"{play}/tickets/{told.ticket}"))
    assert "The queue is paused. Back at <18:00>" in waiting
    assert "Finding a match" not in waiting
    assert (site.audit.page(league)[0].action, site.audit.page(league)[0].target) == ("queue.paused", "main")
    operator.submit(f"{QUEUE}/pause", on=queues, name="main", do="resume")
    assert "Queue main was resumed." in words(operator.page(queues))
    assert "The queue is paused" not in words(operator.page(play))
    assert "Finding a match" in words(operator.page(f"{play}/tickets/{told.ticket}"))
    assert site.audit.page(league)[0].action == "queue.resumed"
    trail = words(operator.page("/operate/audit"))
    assert "paused queue main" in trail
    assert "resumed queue main" in trail


def test_a_pause_with_a_long_message_is_refused(operator, league, site):
    site.queue_service.set_queue(league, "main", {"team_size": 1})
    at = f"/ladders/{league}/operate/queues"
    refused = operator.submit(f"{QUEUE}/pause", on=at, name="main", do="pause", message="x" * 201)
    assert refused.status_code == 422
    assert "The message has 201 characters; at most 200 are allowed" in words(refused.text)
    assert site.queue_service.queue(league, "main").paused is None
