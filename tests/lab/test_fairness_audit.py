"""The audit: behaviours whose worth is known beforehand, seeds, order, interruptions, and digests by a slow twin."""

import json
import shutil
from dataclasses import replace
from math import isnan, log
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import evenmatch
from evenmatch import rules
from evenmatch.errors import UsageError
from evenmatch.lab import behaviours
from evenmatch.lab.backtests.workers import Processes, Threads
from evenmatch.lab.fairness.audit import (
    HONEST,
    LATE,
    AuditPlan,
    Contestant,
    Kept,
    Measure,
    SeasonTask,
    audit,
    digest,
    interval,
    key_of,
    play_season,
    sources,
    t_quantile,
)
from evenmatch.lab.seasons.season import simulate_season
from evenmatch.lab.seasons.settings import SeasonSettings
from lab.own_behaviours import write_behaviour

ELO = Contestant("elo")
SMALL = SeasonSettings(players=40, matches=240, weeks=2.0, culprits=0.2)


class Recording(Threads):
    """Threads that remember which seasons they were asked for."""

    def __init__(self, workers=1):
        super().__init__(workers)
        self.tasks = []

    def submit(self, fn, /, *args):
        self.tasks.append(SeasonTask(*args))
        return super().submit(fn, *args)


def plan(*names, contestants=(ELO,), search=(1, 2), measured=(101, 102, 103, 104), settings=SMALL, **more):
    return AuditPlan(
        contestants=contestants, behaviours=names, settings=settings, search=search, measured=measured, **more
    )


def measured(*args, **kwargs):
    with Threads(1) as workers:
        return audit(plan(*args, **kwargs), workers)


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 7, 11, 30, 200])
@pytest.mark.parametrize("probability", [0.6, 0.9, 0.975, 0.999, 1 - 0.05 / 416, 1 - 1e-6])
def test_quantiles_are_those_of_students_t(freedom, probability):
    assert t_quantile(freedom, probability) == pytest.approx(stats.t.ppf(probability, freedom), rel=1e-4)


def test_an_interval_is_that_of_a_t_test():
    values = np.array([1.0, 4.0, 2.5, -1.0, 3.0])
    low, high = stats.t.interval(0.99, 4, values.mean(), stats.sem(values))
    assert interval(values, 0.01) == pytest.approx((values.mean(), low, high), rel=1e-4)
    alone = interval(values[:1], 0.01)
    assert alone.mean == 1.0
    assert isnan(alone.low)
    assert not alone.is_gain
    assert not alone.is_loss
    assert alone.between() == "unknown"
    assert Measure(1.0, 0.5, 1.5).between() == "+0.5 to +1.5"


def test_who_becomes_stronger_gains_who_throws_loses_and_who_does_nothing_changes_nothing(tmp_path):
    names = [write_behaviour(tmp_path / f"{what}.py", what) for what in ("4.0", "-4.0", "0.0")]
    stronger, throwing, nothing = measured(*names, game="duel", search=(), doses=(1.0,)).cells
    assert stronger.percentile.is_gain
    assert stronger.per_hour.is_gain
    assert throwing.percentile.is_loss
    assert throwing.per_hour.is_loss
    assert nothing.percentile == (0.0, 0.0, 0.0)
    assert nothing.per_hour == (0.0, 0.0, 0.0)
    assert not nothing.percentile.is_gain
    assert not nothing.percentile.is_loss
    assert "gains" in stronger.sentence
    assert "loses" in throwing.sentence
    assert "neither gains nor loses by more than chance, +0.0 percentiles (+0.0 to +0.0)" in nothing.sentence


def test_team_mates_pay_for_who_throws_and_rivals_for_who_is_stronger(tmp_path):
    names = [write_behaviour(tmp_path / f"{what}.py", what) for what in ("8.0", "-8.0")]
    stronger, throwing = measured(*names, game="team", search=(), doses=(1.0,), measured=(101, 102)).cells
    assert throwing.mates.mean < 0 < throwing.rivals.mean
    assert stronger.rivals.mean < 0 < stronger.mates.mean


def test_the_best_dose_is_searched_on_other_seeds_than_it_is_measured_on(tmp_path):
    name = write_behaviour(tmp_path / "middle.py", "8.0 * self.dose * (1.0 - self.dose)", doses=(0.1, 0.5, 1.0))
    with Recording() as workers:
        found = audit(plan(name, game="duel"), workers)
    (cell,) = found.cells
    assert cell.dose == 0.5
    assert cell.doses[0.5] == max(cell.doses.values())
    assert cell.doses[1.0] == 0.0
    of_dose = {}
    for task in workers.tasks:
        of_dose.setdefault(task.dose, []).append(task.settings.seed)
    assert of_dose == {0.1: [1, 2], 1.0: [1, 2], 0.5: [1, 2, *range(101, 105)], 0.0: [1, 2, *range(101, 105)]}
    assert {task.behaviour for task in workers.tasks if task.dose == 0.0} == {HONEST}
    with Threads(1) as threads, pytest.raises(UsageError, match=r"seeds \[2\]: expected other seeds to search"):
        audit(plan(name, measured=(2, 3)), threads)


def several(tmp_path):
    names = [write_behaviour(tmp_path / f"{what}.py", what, doses=(0.5, 1.0)) for what in ("self.dose", "-self.dose")]
    contestants, settings = (ELO, Contestant("wager")), replace(SMALL, matches=60, weeks=1.0)
    return plan(*names, contestants=contestants, search=(1,), measured=(101, 102), game="duel", settings=settings)


def by_place(found):
    return {(cell.contestant, cell.behaviour): cell for cell in found.cells}


def test_the_result_depends_neither_on_threads_nor_on_order(tmp_path):
    one = several(tmp_path)
    turned = replace(one, contestants=one.contestants[::-1], behaviours=one.behaviours[::-1])
    found = []
    for threads, asked in ((1, one), (3, one), (2, turned)):
        with Threads(threads) as workers:
            found.append(by_place(audit(asked, workers)))
    assert len(found[0]) == 4
    assert found[0] == found[1] == found[2]


@pytest.mark.slow
def test_processes_find_what_threads_find(tmp_path):
    one = several(tmp_path)
    with Threads(1) as threads, Processes(2) as processes:
        assert audit(one, threads) == audit(one, processes)


def test_an_interrupted_audit_goes_on_where_it_was_cut_off(tmp_path):
    one, path = several(tmp_path), tmp_path / "kept.jsonl"
    with Threads(1) as workers:
        whole = audit(one, workers)

    def stop(done, total):
        if done == 9:
            raise KeyboardInterrupt

    with Threads(1) as workers, pytest.raises(KeyboardInterrupt):
        audit(one, workers, Kept(path), stop)
    lines = path.read_text().splitlines()
    assert len(lines) == 9
    path.write_text("\n".join(lines)[:-10])
    shares = []
    with Recording() as workers:
        again = audit(one, workers, Kept(path), lambda done, total: shares.append((done, total)))
    assert again == whole
    kept = [json.loads(line)[0] for line in path.read_text().splitlines()]
    assert path.read_text().splitlines()[:8] == lines[:8]
    assert len(kept) == len(set(kept)) == 8 + len(workers.tasks) == shares[-1][0] == shares[-1][1]
    assert sorted(shares) == shares
    with Recording() as workers:
        assert audit(one, workers, Kept(path)) == whole
    assert workers.tasks == []


@pytest.mark.parametrize("text", ["hello\n", '{"a": 1}\n', '["k", [1]]\n', "match_id,player\nm,ann"])
def test_a_file_of_something_else_is_refused_and_left_as_it_is(tmp_path, text):
    path = tmp_path / "notes.txt"
    path.write_text(text)
    with pytest.raises(UsageError, match="is not a file of finished seasons"):
        Kept(path)
    assert path.read_text() == text
    with pytest.raises(UsageError, match="cannot be used to keep finished seasons"):
        Kept(tmp_path)


def test_other_parameters_doses_settings_and_sources_give_other_keys(tmp_path):
    name = write_behaviour(tmp_path / "own.py", "1.0")
    task = SeasonTask(ELO, name, 1.0, SMALL)
    tasks = [
        task,
        task._replace(contestant=Contestant("elo", None, (("k", 20.0),))),
        task._replace(contestant=Contestant("wager")),
        task._replace(dose=0.5),
        task._replace(settings=replace(SMALL, policy="quick")),
        task._replace(settings=replace(SMALL, seed=2)),
    ]
    keys = {key_of(play_season, one) for one in tasks}
    assert len(keys) == 6
    assert key_of(play_season, SeasonTask(ELO, name, 1.0, replace(SMALL))) == key_of(play_season, task)
    assert key_of(digest, task) not in keys
    write_behaviour(tmp_path / "own.py", "2.0")
    assert key_of(play_season, task) not in keys


@pytest.mark.parametrize(
    "name",
    [
        "lab/seasons/games.py",
        "lab/behaviours/smurf.py",
        "matchmaking/exact_teams.py",
        "policy.py",
        "lab/fairness/audit.py",
    ],
)
def test_a_changed_source_gives_other_keys(tmp_path, name):
    own = Path(evenmatch.__file__).parent
    copy = tmp_path / "evenmatch"
    shutil.copytree(own, copy, ignore=lambda _, names: [n for n in names if "." in n and not n.endswith(".py")])
    assert sources(copy) == sources(own)
    (copy / name).write_text((copy / name).read_text() + "\n# changed\n")
    changed = shutil.move(copy, tmp_path / "changed")  # the hash of a folder is computed once
    assert sources(Path(changed)) != sources(own)


def slow_percentile(record, account):
    """The mean over the late snapshots: who is below counts 1, who is level counts one half."""
    own = range(record.settings.players)
    found = []
    for snapshot in record.snapshots:
        if snapshot.round < LATE * (record.rounds - 1):
            continue
        listed = [snapshot.rating[other] for other in own if snapshot.played[other] > 0]
        mine = snapshot.rating[account]
        below = sum(rating < mine for rating in listed) + 0.5 * sum(rating == mine for rating in listed)
        found.append(100.0 * below / len(listed))
    return sum(found) / len(found)


@pytest.mark.parametrize(("name", "game"), [("alt_splitter", "duel"), ("booster_crew", "team"), ("smurf", "brawl")])
def test_a_digest_is_what_a_slow_count_finds(name, game):
    behaviour = behaviours.find(name)(1.0)
    record = simulate_season(replace(SMALL, game=game), rules("wager"), [behaviour])
    judged = behaviour.judged(record)
    found = digest(record, judged)
    assert found.gainers == sorted({int(record.person[account]) for account in np.flatnonzero(judged)})
    for player in range(SMALL.players):
        accounts = [a for a in np.flatnonzero(judged).tolist() if record.person[a] == player] or [player]
        expected = max(slow_percentile(record, account) for account in accounts)
        assert found.percentile[player] == pytest.approx(expected, abs=6e-4), player
    assert (found.mates, found.rivals) == pytest.approx(slow_costs(record), rel=1e-9, abs=1e-9)
    assert found.log_loss == pytest.approx(slow_loss(record), rel=1e-9)
    assert found.wait == pytest.approx(record.waits.mean())


def slots_of(record):
    """For each match its slots (account, team, change of rating), and its places and predictions by team."""
    h, c = record.history, record.history.columns
    for match in range(len(h)):
        slots = [
            (int(c.player[slot]), int(h.slot_team[slot]), record.after[slot] - record.before[slot])
            for slot in np.flatnonzero(h.slot_match == match)
        ]
        teams = slice(c.team_start[match], c.team_start[match + 1])
        yield slots, c.place[teams].tolist(), record.expected[teams].tolist()


def slow_costs(record):
    gains = {"mate": [], "rival": [], "other": []}
    for slots, *_ in slots_of(record):
        culprits = {team for account, team, _ in slots if record.crew[account] >= 0}
        for account, team, gain in slots:
            if record.crew[account] < 0:
                if team in culprits:
                    gains["mate"].append(gain)
                if culprits - {team}:
                    gains["rival"].append(gain)
                if not culprits:
                    gains["other"].append(gain)
    spread = record.state.rating[: record.settings.players].std()
    usual = np.mean(gains["other"]) if gains["other"] else 0.0
    return tuple(1000 / spread * (np.mean(gains[w]) - usual) if gains[w] else 0.0 for w in ("mate", "rival"))


def slow_loss(record):
    losses = []
    for at, (slots, places, expected) in enumerate(slots_of(record)):
        if at < len(record.history) // 2 or any(record.crew[account] >= 0 for account, *_ in slots):
            continue
        for own, (place, chance) in enumerate(zip(places, expected, strict=True)):
            rivals = places[:own] + places[own + 1 :]
            result = sum((place < rival) + 0.5 * (place == rival) for rival in rivals) / len(rivals)
            losses.append(-result * log(chance) - (1 - result) * log(1 - chance))
    return np.mean(losses) if losses else float("nan")


def test_a_cell_that_cannot_be_measured_is_told(tmp_path):
    with Threads(1) as workers:
        with pytest.raises(UsageError, match="nothing to audit"):
            audit(plan("win_trader", contestants=(Contestant("wager"),), game="brawl"), workers)
        with pytest.raises(UsageError, match=r"culprits 0\.001 of 40 players: expected at least one culprit"):
            audit(plan("smurf", settings=replace(SMALL, culprits=0.001)), workers)


@pytest.mark.parametrize(
    ("title", "words"), [("Opposing crew", "an opposing crew"), ("Smurf", "a smurf"), ("Honest player", "an honest")]
)
def test_a_sentence_has_the_right_article(tmp_path, title, words):
    name = write_behaviour(tmp_path / "own.py", "0.0", title=title)
    found = measured(name, measured=(101,), search=(), game="duel", settings=replace(SMALL, matches=30))
    assert f"Under elo, {words}" in found.cells[0].sentence
    assert "in a single pair of seasons, which may be chance" in found.cells[0].sentence
