"""Stored reasons of ended tickets, read back for pages in other languages."""

import pytest

from evenmatch.queues.endings import banned, ending

REASONS = {
    "left the queue": {},
    "dan declined an offered match": {"players": "dan"},
    "cat, dan left while a match was offered": {"players": "cat, dan"},
    "dan did not answer an offered match in time": {"players": "dan"},
    "no heartbeat for 45 s": {"seconds": "45"},
    "no match was found in 20 s, the longest wait that its queue allows": {"seconds": "20"},
    "queue 'ranked' was removed": {"queue": "'ranked'"},
    "'bob' is banned from the ladder": {"player": "'bob'"},
    "'a', 'b' are banned from the ladder": {"players": "'a', 'b'"},
    "{0}\n%s declined an offered match": {"players": "{0}\n%s"},
}


@pytest.mark.parametrize("reason", REASONS)
def test_a_stored_reason_is_a_template_and_its_values(reason):
    read = ending(reason)
    assert dict(read.values) == REASONS[reason]
    assert str(read) == reason


def test_a_reason_that_is_no_sentence_for_players_stays_as_it_is():
    assert ending("regions 'eu' would exceed the limit; expected at most 60 in a queue") is None


def test_one_banned_player_and_several():
    assert banned(["bob"]) == "'bob' is banned from the ladder"
    assert banned(["a", "b"]) == "'a', 'b' are banned from the ladder"
