"""A ladder's counted matches as the lab replays them: the ladder's own ratings come of them, or a note says why not."""

import numpy as np
import pytest

from evenmatch import rate, rules
from evenmatch.corrections.corrections import Ban, Void
from evenmatch.corrections.ladder_history import read_history
from evenmatch.errors import InputError, UnknownNameError
from ledger.sample_matches import after, duel, micros, ratings, team_match


def replayed(service, ladder="duel", **asked):
    """Everybody's rating by name when a ladder's history is rated by its rules."""
    found = read_history(service.database, ladder, **asked)
    made = rate(found.matches, found.rules)
    return dict(zip(made.matches.player_names, made.state["rating"].tolist(), strict=True))


@pytest.fixture
def played_ladder(service, ladder):
    """Teams, a draw, a guest, a quitter; m4 is told late, and counts as ended with the match before it."""
    service.record(team_match(1, (1, "ann", "bob"), (2, "cat", "dan~"), ladder=ladder))
    service.record(team_match(5, (1, "ann"), (1, "cat"), ladder=ladder))
    service.record(team_match(4, (1, "dan"), (2, "bob*"), ladder=ladder))
    service.record(team_match(6, (1, "eve"), (2, "ann"), ladder=ladder))
    return ladder


def test_the_ladders_ratings_come_of_its_history(service, played_ladder):
    found = read_history(service.database, played_ladder)
    c = found.matches.history.columns
    assert found.matches.match_id.to_pylist() == ["m1", "m5", "m4", "m6"]
    assert c.time.tolist() == [micros(after(hour)) for hour in (1, 5, 5, 6)]
    assert c.place.tolist() == [1, 2, 1, 1, 1, 2, 1, 2]
    named = [found.matches.player_names[at] for at in c.player.tolist()]
    assert named == ["ann", "bob", "cat", "dan", "ann", "cat", "dan", "bob", "eve", "ann"]
    assert [named[at] for at in np.flatnonzero(~c.keep)] == ["dan"]
    assert np.flatnonzero(c.quit).tolist() == [7]
    assert replayed(service) == ratings(service, "duel")
    assert (found.earlier, found.notes, found.settings.standings.placement) == (0, (), 2)
    assert found.rules.system.name == "elo"


def test_what_was_corrected_is_read_as_it_counts_now(service, played_ladder):
    service.correct(played_ladder, Void("m5"))
    service.correct(played_ladder, Ban(player="eve", rule="refund"))
    service.record(duel(7, "gus", "dan", played_ladder))
    service.merge("gus", into="bob")
    found = read_history(service.database, played_ladder)
    assert found.matches.match_id.to_pylist() == ["m1", "m4", "m6", "m7"]
    assert "gus" not in found.matches.player_names
    assert np.flatnonzero(~found.matches.history.columns.keep).tolist() == [3, 7]  # the guest; ann, who lost to eve
    assert replayed(service) == ratings(service, "duel")
    assert replayed(service)["ann"] == 1516.0


def test_the_latest_matches_alone_are_read_where_fewer_are_asked_for(service, played_ladder):
    service.correct(played_ladder, Void("m4"))
    service.record(duel(7, "ann", "bob", played_ladder))
    for latest, ids, earlier in [
        (1, ["m7"], 4),
        (2, ["m6", "m7"], 3),
        (3, ["m6", "m7"], 2),
        (4, ["m5", "m6", "m7"], 1),
    ]:
        found = read_history(service.database, played_ladder, latest=latest)
        assert (found.matches.match_id.to_pylist(), found.earlier) == (ids, earlier)
    assert found.notes == (
        "Only the latest matches were read: 1 earlier one was left out, and all players start as newcomers after it.",
    )


def test_why_a_replay_gives_other_ratings_is_said(service, played_ladder):
    service.open_season(played_ladder, title="two")
    assert "New seasons reset the ratings" in read_history(service.database, played_ladder).notes[0]
    service.start_ratings(played_ladder, {"gus": 1700.0})
    service.change_rules(played_ladder, "elo", rules("elo", k=20))
    assert [note.split()[0] for note in read_history(service.database, played_ladder).notes] == ["New", "Some"]


def test_a_ladder_without_matches_says_so(service, ladder):
    with pytest.raises(InputError, match="ladder 'duel' has no rated match"):
        read_history(service.database, ladder)
    with pytest.raises(UnknownNameError):
        read_history(service.database, "nowhere")
