"""Advice for the number of placement matches: moves of percentiles counted by hand, and by a slow twin."""

import numpy as np
import pytest

from evenmatch import from_matches, rate, rules
from evenmatch.errors import InputError
from evenmatch.lab.ladder.learning import FEW, MOST, PERIODS, placement_advice
from evenmatch.lab.sample import season
from evenmatch.standings.distribution import Population
from ledger.sample_matches import duel


@pytest.fixture(scope="module")
def ratings():
    return rate(season(3, players=80, matches=900).matches, rules("wager"), journal=True)


def moves_by_twin(ratings):
    """Moves by completed matches before, slot by slot in plain Python."""
    c, journal = ratings.matches.history.columns, ratings.journal
    own = [slot for slot in range(len(c.player)) if c.keep[slot] and not c.quit[slot]]
    completed, latest, moves = {}, {}, {}
    sizes = [len(own) // PERIODS + (at < len(own) % PERIODS) for at in range(PERIODS)]
    for size in sizes:
        period, own = own[:size], own[size:]
        known = Population(np.sort(np.array(list(latest.values()))))
        for slot in period:
            player = int(c.player[slot])
            count = completed[player] = completed.get(player, -1) + 1
            if len(known) >= FEW:
                before, after = (float(known.queue_percentiles(x[slot])) for x in (journal.before, journal.after))
                moves.setdefault(count, []).append(abs(after - before))
        latest |= {int(c.player[slot]): float(journal.after[slot]) for slot in period}
    return moves


def test_moves_match_a_slow_twin(ratings):
    moves = moves_by_twin(ratings)
    advice = placement_advice(ratings, 5)
    assert len(advice.steps) > 20
    for step in advice.steps:
        expected = np.array(moves[step.completed])
        assert step.players == len(expected) >= FEW
        assert step.mean == pytest.approx(expected.mean(), abs=1e-9)
        assert step.error == pytest.approx(expected.std(ddof=1) / np.sqrt(len(expected)), abs=1e-9)
    assert advice.steps[-1].completed == MOST or len(moves.get(advice.steps[-1].completed + 1, [])) < FEW


def test_after_the_advised_number_no_match_moves_more_than_the_bound(ratings):
    for bound in (2.0, 5.0, 12.0):
        advice = placement_advice(ratings, bound)
        if advice.placement is None:
            assert advice.steps[-1].mean + 2 * advice.steps[-1].error >= bound
            continue
        later = [step for step in advice.steps if step.completed >= advice.placement]
        assert later[0].mean < bound
        assert all(step.mean - 2 * step.error < bound for step in later)
        before = [step for step in advice.steps if step.completed < advice.placement]
        assert not before or before[-1].mean >= bound or any(step.mean - 2 * step.error >= bound for step in before)
    assert placement_advice(ratings, 100).placement == advice.steps[0].completed


def test_too_few_matches_are_refused():
    few = rate(from_matches([duel(at, "ann", "bob") for at in range(1, 50)]), rules("elo"), journal=True)
    with pytest.raises(InputError, match="too few matches for advice: expected 30 players"):
        placement_advice(few)
