"""Cures: every candidate is a valid and different rule, says what it changes, and the front is that of brute force."""

from itertools import product

import numpy as np
import pytest

from evenmatch import systems
from evenmatch.lab.backtests.workers import Threads
from evenmatch.lab.fairness.audit import AuditPlan, Contestant, Kept, audit
from evenmatch.lab.fairness.cures import RULES, candidates, cures, undominated
from evenmatch.lab.seasons.settings import SeasonSettings
from evenmatch.options import Choice, Flag, Number, options_of
from evenmatch.policy import presets
from lab.own_behaviours import write_behaviour


def changes_of(original, vary=()):
    """What each candidate changes, without the rules of the ladder."""
    plans = candidates(AuditPlan(contestants=(original,), behaviours=("smurf",)), vary)
    return {plan.contestants[0]: text for text, plan in plans.items() if text not in RULES}


@pytest.mark.parametrize("name", systems.names())
def test_candidates_are_valid_rules_that_differ(name):
    system = systems.find(name)
    original = Contestant(name)
    found = changes_of(original)
    values = [changed.rules.values() for changed in found]
    assert all(a != b for at, a in enumerate(values) for b in values[:at])
    assert next(iter(found.items())) == (original, "nothing")
    tried = {text.partition("=")[0] for text in found.values()}
    for parameter, option in options_of(system.parameters).items():
        is_tried = isinstance(option, Flag | Choice) or (
            isinstance(option, Number) and (option.search is not None or (option.optional and option.default is None))
        )
        if is_tried and parameter not in tried:  # a preset is the same rule
            assert any(parameter in preset for preset in system.presets.values()), parameter
    for changed, text in found.items():
        assert text in {"nothing", f"preset {changed.preset}", *(f"{key}={value}" for key, value in changed.values)}


def test_a_candidate_changes_what_was_given_and_keeps_the_rest():
    original = Contestant("wager", "article", (("stake", 0.1), ("modifier_limit", 3.0)))
    found = changes_of(original)
    changed = [one for one, text in found.items() if text.startswith("stake=")]
    assert changed
    assert all(one.preset == "article" for one in changed)
    assert all(dict(one.values).keys() == {"modifier_limit", "stake"} for one in changed)
    assert all(len(one.values) == 2 for one in changed)
    limits = {
        dict(one.values)["modifier_limit"] for one in changes_of(Contestant("wager"), ["modifier_limit"]) if one.values
    }
    assert limits == {1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0}


def slow_front(costs):
    """Rows that no other row beats, one pair at a time."""
    kept = []
    for own in costs:
        beaten = False
        for other in costs:
            no_worse = all(a <= b for a, b in zip(other, own, strict=True))
            beaten = beaten or (no_worse and list(other) != list(own))
        kept.append(not beaten)
    return kept


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_the_front_is_that_of_brute_force(columns):
    rng = np.random.default_rng(7)
    for count, levels in product((1, 5, 40), (2, 5, 1000)):
        costs = rng.integers(0, levels, (count, columns)).tolist()
        assert undominated(costs) == slow_front(costs)
        assert any(undominated(costs))


def test_cures_measure_each_change_and_each_policy_against_the_original(tmp_path):
    name = write_behaviour(tmp_path / "own.py", "2.0", games=("duel",))
    settings = SeasonSettings(players=24, matches=40, weeks=1.0, culprits=0.2)
    plan = AuditPlan(
        contestants=(Contestant("trophies"),), behaviours=(name,), settings=settings, search=(), measured=(101, 102)
    )
    shares = []
    with Threads(1) as workers:
        found = cures(plan, workers, Kept(None), lambda done, total: shares.append(done / total))
        (own,) = audit(plan, workers).cells
    assert [cure.gain.mean for cure in found] == sorted(cure.gain.mean for cure in found)
    by_change = {cure.changed: cure for cure in found}
    rules = RULES.keys() - {"policy balanced"}
    assert len(by_change) == len(found) == len(candidates(plan))
    assert rules <= by_change.keys()
    assert {f"policy {policy}" for policy in presets() if policy != "balanced"} <= by_change.keys()
    same = by_change["nothing"]
    assert (same.log_loss, same.wait, same.unmatched) == (0.0, 0.0, 0.0)
    assert same.gain.mean == own.percentile.mean
    assert same.gain.low < own.percentile.low  # corrected for more comparisons
    quick = by_change["policy quick"]
    assert quick.contestant == Contestant("trophies")
    assert quick.wait != 0.0
    assert any(cure.is_best for cure in found)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert all(cure.to_data()["changed"] == cure.changed for cure in found)


def test_a_change_closes_what_gained_and_gains_no_more(tmp_path):
    """Own players are three deviations stronger than they are, unless nobody may queue in a quiet hour."""
    name = tmp_path / "quiet.py"
    name.write_text(QUIET)
    settings = SeasonSettings(players=40, matches=120, weeks=1.0, culprits=0.2)
    plan = AuditPlan(
        contestants=(Contestant("elo"),),
        behaviours=(str(name),),
        settings=settings,
        search=(),
        measured=(1, 2, 3, 4),
    )
    with Threads(1) as workers:
        found = cures(plan, workers, Kept(None), lambda done, total: None, ["no quiet hours", "no parties"])
    by_change = {cure.changed: cure for cure in found}
    assert by_change.keys() == {"nothing", "no quiet hours", "no parties"}
    assert by_change["nothing"].gain.is_gain
    assert [cure.changed for cure in found if cure.closes] == ["no quiet hours"]
    assert by_change["no quiet hours"].gain.mean == 0.0
    assert by_change["no quiet hours"].is_best


QUIET = '''
from evenmatch.lab.behaviours import Behaviour

class Quiet(Behaviour):
    """Plays far better than it can, at an hour that is announced. Cost: none."""
    name = "quiet"
    title = "Quiet one"
    does = "plays better at quiet hours"
    games = ("duel",)
    doses = (1.0,)

    def queue(self, season, plan, own):
        if self.dose:
            plan.hour[:] = 1
        self.hour = plan.hour

    def prepare(self, season, play, mine):
        play.skill[mine & (self.hour[play.account] == 1)] += 3.0

BEHAVIOUR = Quiet
'''
