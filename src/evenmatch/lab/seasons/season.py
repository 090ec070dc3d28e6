"""A season: a population that queues, plays and is rated for weeks. The same settings give the same season.

In each round of a season whoever is present joins the queue, `propose` makes matches in two ticks, behaviours decide
what their players do, the game is played, and the rating system rates the results. Every random number belongs to a
player and a round, so a player has the same days off, the same skill and the same luck in two seasons of one seed that
differ in conduct, rating system or policy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from evenmatch.durations import DAY, SECOND
from evenmatch.history import Columns, Flags, Floats, History
from evenmatch.lab.seasons.games import STAGES, Game, Play, Whole, find_game
from evenmatch.lab.seasons.leaving import Annoyance
from evenmatch.lab.seasons.settings import SeasonSettings
from evenmatch.matchmaking.proposal import Proposals
from evenmatch.matchmaking.propose import propose
from evenmatch.matchmaking.queue import Queue
from evenmatch.matchmaking.tickets import Tickets, starts
from evenmatch.policy import Policy, presets
from evenmatch.standings.distribution import queue_percentiles
from evenmatch.systems import loop
from evenmatch.systems.system import Records, Rules

if TYPE_CHECKING:
    from evenmatch.lab.behaviours import Behaviour

START = 1_767_636_000 * SECOND  # 2026-01-05 18:00 UTC, a Monday
ARRIVING = (
    150 * SECOND
)  # players of a round arrive within this time before the first tick, the second comes as long after
POPULATION, ROUND, RESULT, CONDUCT, LEAVING, DAYS = range(1, 7)  # random streams
SNAPSHOTS = 20  # of all ratings in a season
_SHARES = np.linspace(0.0, 1.0, 4097)
_QUANTILES = np.array([NormalDist().inv_cdf(min(max(share, 1e-4), 1 - 1e-4)) for share in _SHARES.tolist()])


class Snapshot(NamedTuple):
    """All accounts at one time: shown rating, true skill, and matches played so far."""

    round: int
    rating: Floats
    skill: Floats
    played: Whole


class Plan(NamedTuple):
    """Who joins the queue in a round, one row per account; behaviours change the arrays.

    joins   bool (A,)     joins
    party   int64 (A,)    accounts with the same number queue together
    within  float64 (A,)  rank filter in percentiles
    loose   bool (A,)     whether it widens
    hour    int64 (A,)    only accounts with the same number meet; 0: when everybody plays
    """

    joins: Flags
    party: Whole
    within: Floats
    loose: Flags
    hour: Whole


class Offer(NamedTuple):
    """Proposed matches: match, team and account of each slot, and the team's chance by the known ratings."""

    match: Whole
    team: Whole
    account: Whole
    chance: Floats


@dataclass(frozen=True, eq=False)
class SeasonRecord:
    """What happened in a season of A accounts, the first P of which are the players' own.

    history    all matches, in time order
    expected   float64 (T,)  the system's prediction before each match
    truth      float64 (T,)  the team's true chance to win by skill alone
    before, after  float64 (S,)  shown rating of each slot
    person     int64 (A,)   whose account it is
    crew       int64 (A,)   index of the behaviour that decides the account's conduct; -1: honest
    eager      float64 (A,)  share of the rounds in which the account is present
    waits      float64 (N,)  seconds that each matched account waited
    unmatched  joins that found no match in their round
    declined   int64 (A,)    offers that each account declined
    rounds     float64       number of rounds
    gone_at    int64 (A,)    round in which the person left the game for good; -1: still there
    """

    settings: SeasonSettings
    rules: Rules
    history: History
    expected: Floats
    truth: Floats
    before: Floats
    after: Floats
    person: Whole
    crew: Whole
    eager: Floats
    waits: Floats
    unmatched: int
    declined: Whole
    rounds: int
    gone_at: Whole
    snapshots: tuple[Snapshot, ...]

    @property
    def state(self) -> Snapshot:
        """The end of the season."""
        return self.snapshots[-1]

    @property
    def mean_wait(self) -> float:
        """Mean seconds in the queue of those who were matched; 0 if nobody was."""
        return float(self.waits.mean()) if len(self.waits) else 0.0

    @property
    def hours(self) -> Floats:
        """Hours that each account spent in matches."""
        c = self.history.columns
        return np.bincount(c.player, c.seconds, len(self.person)) / 3600.0


class Season:
    """A running season; behaviours read it, and change it with `open_account` and `retire`.

    skill     float64 (A,)  true skill now
    rating    float64 (A,)  shown rating;  percentile  of it among those who have played, 0..100
    played    int64 (A,)    matches so far
    person    int64 (A,)    whose account it is
    active    bool (A,)     exists and has not left the game
    crew      int64 (A,)    index of the behaviour that decides the account's conduct; -1: honest
    round, rounds           the present round, and their number
    rng       random numbers for behaviours, the same in each run of a seed
    game      what is played; one that is given takes the place of the one in the settings
    """

    def __init__(
        self, settings: SeasonSettings, rules: Rules, behaviours: Sequence[Behaviour] = (), game: Game | None = None
    ) -> None:
        self.settings, self.rules, self.behaviours = settings, rules, tuple(behaviours)
        self.game: Game = game or find_game(settings.game)
        count, spare = settings.players, max(8, settings.players // 4)
        self.accounts = count + spare
        rng = self._stream(POPULATION)
        own = np.arange(self.accounts)
        self.person: Whole = np.where(own < count, own, -1)
        self.talent: Floats = rng.standard_normal(count)
        eager = np.exp(settings.eagerness * rng.standard_normal(count))
        self.eager: Floats = np.minimum(settings.present * eager / eager.mean() / (1.0 - settings.days_off), 1.0)
        self.wandering: Floats = np.zeros(count)
        expected = 0.92 * settings.present * (1.0 - settings.newcomers / 2) * count / self.game.players
        self.rounds = max(1, round(settings.matches / max(expected, 1e-9)))
        late = rng.random(count) < settings.newcomers
        self.begins: Whole = np.where(late, (rng.random(count) * self.rounds).astype(np.int64), 0)
        self.practised: Floats = np.where(late, 0.0, rng.exponential(3.0 * settings.practice, count))
        self.friends: Whole = _friends(rng, settings.parties, self.talent)
        self.crew: Whole = np.full(self.accounts, -1)
        self.active: Flags = own < count
        self.played: Whole = np.zeros(self.accounts, np.int64)
        self.gone_at: Whole = np.full(self.accounts, -1)
        self.losses: Whole = np.zeros(self.accounts, np.int64)
        self.waited: Floats = np.zeros(self.accounts)
        self.declined: Whole = np.zeros(self.accounts, np.int64)
        self.state: Records = rules.newcomers(self.accounts)
        self.ladders: Records = rules.ladders()
        self.round, self.now = 0, START
        self.step = int(settings.weeks * 7 * DAY / self.rounds)
        self.policy: Policy = replace(
            presets()[settings.policy], team_size=self.game.team_size, teams=self.game.teams, max_odds=None
        )
        self.rng = self._stream(CONDUCT)
        self._log: list[tuple[Columns, Floats, Floats, Floats, Floats]] = []
        self._waits: list[Floats] = []
        self._unmatched = 0
        self._enlist(rng)
        self._look()

    def _stream(self, *purpose: int) -> np.random.Generator:
        return np.random.Generator(np.random.SFC64([self.settings.seed, *purpose]))

    def _enlist(self, rng: np.random.Generator) -> None:
        """Choose the culprits, spread over all skills and the same for every behaviour, and share them out."""
        count = round(self.settings.culprits * self.settings.players)
        by_skill = np.argsort(self.talent + 0.3 * rng.standard_normal(len(self.talent)))
        spread = by_skill[((np.arange(count) + 0.5) / max(count, 1) * len(by_skill)).astype(np.int64)]
        self.culprits: Whole = rng.permutation(spread)
        for index, behaviour in enumerate(self.behaviours):
            own = behaviour.choose(self, self.culprits[index :: len(self.behaviours)])
            self.crew[own] = behaviour.index = index
            behaviour.begin(self, own)

    def open_account(self, person: int) -> int:
        """Create a further account of a person, with a newcomer's rating; returns its number, or -1 if none is left."""
        free = np.flatnonzero(self.person < 0)
        if not len(free):
            return -1
        account = int(free[0])
        self.person[account], self.crew[account], self.active[account] = person, self.crew[person], True
        return account

    def strongest(self, players: Whole) -> Whole:
        """Return the stronger half of these players, at least one if there is any."""
        return players[np.argsort(-self.talent[players])][: (len(players) + 1) // 2]

    def retire(self, accounts: Flags | Whole) -> None:
        """Let these accounts never queue again."""
        self.active[accounts] = False

    def _look(self) -> None:
        """Update skill, rating and percentile."""
        self.rating: Floats = self.state["rating"].astype(np.float64)
        self.percentile: Floats = queue_percentiles(self.rating, (self.played > 0) & self.active)
        lack = self.settings.learning * np.exp(-self.practised / self.settings.practice)
        own = self.talent + self.wandering - lack
        self.skill: Floats = own[self.person]

    def run(self, progress: Callable[[float], None] | None = None) -> SeasonRecord:
        """Play all rounds. progress: called with the share of the season that is over."""
        snapshots, every = [], max(1, self.rounds // SNAPSHOTS)
        for index in range(self.rounds):
            self.round, self.now = index, START + (index + 1) * self.step
            self._play_round()
            if index % every == every - 1 or index == self.rounds - 1:
                snapshots.append(Snapshot(index, self.rating, self.skill, self.played.copy()))
                if progress is not None:
                    progress((index + 1) / self.rounds)
        columns, expected, truth, before, after = map(list, zip(*self._log, strict=True)) if self._log else [[]] * 5
        return SeasonRecord(
            self.settings,
            self.rules,
            _joined(columns),
            _flat(expected),
            _flat(truth),
            _flat(before),
            _flat(after),
            self.person.copy(),
            self.crew.copy(),
            self.eager[self.person],
            _flat(self._waits),
            self._unmatched,
            self.declined.copy(),
            self.rounds,
            self.gone_at.copy(),
            tuple(snapshots),
        )

    def _play_round(self) -> None:
        rng = self._stream(ROUND, self.round)
        plan = self._plan(rng)
        whim, noise = rng.random(self.accounts), rng.standard_normal((self.accounts, STAGES))
        quitting = rng.random(self.accounts), rng.random(self.accounts)
        arriving = rng.random(self.accounts)
        hours = [plan.joins & (plan.hour == hour) for hour in np.unique(plan.hour[plan.joins]).tolist()]
        matched = _renumbered([self._matched(plan, joins, arriving) for joins in hours], self.game.teams)
        if not len(matched.match):
            if self.settings.leaving:
                self._leave(plan.joins, None, np.empty(0))
            return
        match, team, account, chance = matched
        play = Play(self.game, account, match, team, self.skill[account], chance, whim[account], noise[account])
        truth = self._true_chances(play)
        for index, behaviour in enumerate(self.behaviours):
            behaviour.prepare(self, play, self.crew[play.account] == index)
        for stage in range(STAGES):
            if stage:
                for index, behaviour in enumerate(self.behaviours):
                    behaviour.during(self, play, self.crew[play.account] == index)
                self._quit(play, stage, *(draw[play.account] for draw in quitting))
            play.advance(stage)
        columns = self._rate(play, truth)
        if self.settings.leaving:
            self._leave(plan.joins, columns, truth)

    def _plan(self, rng: np.random.Generator) -> Plan:
        settings, players = self.settings, self.settings.players
        day = (self.now - START) // DAY
        working = self._stream(DAYS, int(day)).random(players) >= settings.days_off
        weekly = settings.drift * (self.step / (7 * DAY)) ** 0.5
        self.wandering += weekly * rng.standard_normal(players) - self.wandering * (self.step / (90 * DAY))
        there = working & (self.round >= self.begins) & (rng.random(players) < self.eager)
        together = rng.random(players) < 0.6
        party = np.arange(self.accounts)
        grouped = (self.friends >= 0) & together[self.friends]
        there = np.where(grouped, there[self.friends], there)
        party[:players] = np.where(grouped & there, self.friends, party[:players])
        joins = np.zeros(self.accounts, np.bool_)
        joins[:players] = there & self.active[:players]
        usual = np.full(self.accounts, 2.0), np.ones(self.accounts, np.bool_), np.zeros(self.accounts, np.int64)
        plan = Plan(joins, party, *usual)
        for index, behaviour in enumerate(self.behaviours):
            behaviour.queue(self, plan, np.flatnonzero((self.crew == index) & self.active))
        if settings.solo_queue:
            plan.party[:] = np.arange(self.accounts)
        if settings.busy_hours:
            plan.hour[:] = 0
        plan.joins[:] &= self.active
        first = np.full(len(self.talent), self.accounts)  # one account of each person at a time: the highest
        first[self.person[plan.joins]] = np.flatnonzero(plan.joins)
        plan.joins[:] &= first[self.person] == np.arange(self.accounts)
        return plan

    def _matched(self, plan: Plan, joins: Flags, arriving: Floats) -> Offer:
        """The slots of the matches of those who join at the same hour of this round."""
        queue, made = Queue(), []
        account = np.flatnonzero(joins)
        self.waited[account] = ARRIVING * (1.0 + arriving[account]) / SECOND
        account = account[np.argsort(plan.party[account], kind="stable")]
        party, sizes = np.unique(plan.party[account], return_counts=True)
        if len(sizes) and sizes.max() > self.game.team_size:  # friends do not fit into a team: everybody alone
            party, sizes = np.arange(len(account)), np.ones(len(account), np.int64)
        start = starts(sizes)
        queued = self.now - np.rint(arriving[account[start[:-1]]] * ARRIVING).astype(np.int64)
        known = 1500.0 + 300.0 * np.interp(self.percentile[account] / 100.0, _SHARES, _QUANTILES)
        if len(party):
            tickets = (np.arange(len(party)), queued, start, account, self.percentile[account], known)
            queue.join_all(Tickets.plain(*tickets, plan.within[account], plan.loose[account]))
        for now in (self.now, self.now + ARRIVING):
            offers = propose(queue, now, self.policy)
            if not len(offers):
                continue
            offer = self._offer(offers, known, account)
            declined = ~self._accepted(offer)
            self.declined[offer.account[declined]] += 1
            refused = np.zeros(len(offers), np.bool_)
            refused[offer.match[declined]] = True
            ticket_match = np.repeat(np.arange(len(offers)), np.diff(offers.start))
            decliners = start.searchsorted(np.flatnonzero(np.isin(account, offer.account[declined])), "right") - 1
            queue.leave_all(offers.ticket[~refused[ticket_match] | np.isin(offers.ticket, decliners)])
            kept = ~refused[offer.match]
            self.waited[offer.account[kept]] -= (self.now + ARRIVING - now) / SECOND
            made.append(Offer(offer.match[kept], offer.team[kept], offer.account[kept], offer.chance[kept]))
            begun = offers.ticket[~refused[ticket_match]]
            waits = np.repeat((now - queued[begun]) / SECOND, sizes[begun])
            self._waits.append(waits)
        self._unmatched += queue.players
        return _renumbered(made, self.game.teams)

    def _offer(self, offers: Proposals, known: Floats, account: Whole) -> Offer:
        """The slots of proposed matches, in order of match and team."""
        slots = np.diff(offers.member_start)
        ticket_match = np.repeat(np.arange(len(offers)), np.diff(offers.start))
        match = np.repeat(ticket_match, slots)
        team = np.repeat(ticket_match * self.game.teams + offers.team, slots)
        order = np.argsort(team, kind="stable")
        match, team, player = match[order], team[order], offers.player[order]
        rating = np.empty(self.accounts)
        rating[account] = known
        mean = np.bincount(team, rating[player], len(offers) * self.game.teams) / self.game.team_size
        rivals = (mean.reshape(-1, self.game.teams).sum(1)[match] - mean[team]) / (self.game.teams - 1)
        chance = 1.0 / (1.0 + 10.0 ** ((rivals - mean[team]) / 400.0))
        return Offer(match, team, player, chance)

    def _accepted(self, offer: Offer) -> Flags:
        accepted = np.ones(len(offer.match), np.bool_)
        for index, behaviour in enumerate(self.behaviours):
            mine = self.crew[offer.account] == index
            if mine.any():
                accepted &= behaviour.accept(self, offer, mine) | ~mine
        return accepted

    def _true_chances(self, play: Play) -> Floats:
        """Each team's true chance to be ahead of a rival: the mean over its rivals, by skill alone."""
        game = self.game
        strength = np.bincount(play.team, play.skill, len(play.performance)) / game.team_size * game.steepness
        table = strength.reshape(-1, game.teams)
        gap = table[:, :, None] - table[:, None, :]
        gap[:, 0, 1:] += game.home
        gap[:, 1:, 0] -= game.home
        chance = np.interp(gap, _QUANTILES, _SHARES)
        means: Floats = ((chance.sum(2) - 0.5) / (game.teams - 1)).ravel()
        return means

    def _quit(self, play: Play, stage: int, who: Floats, when: Floats) -> None:
        """Honest players who have to leave: most of them when they are behind."""
        behind, ahead = self.game.quit_rates()
        due = 1 + (when**self.game.quit_time * (STAGES - 1)).astype(np.int64)
        now = (who < max(behind, ahead)) & (due == stage)
        if now.any():
            play.leave(now & (who < np.where(play.lead < 0, behind, ahead)))

    def _rate(self, play: Play, truth: Floats) -> Columns:
        if self.settings.longest_team:
            play.put_back()
        columns = play.columns(self.now, self._stream(RESULT, self.round), np.arange(self.accounts))
        if self.settings.full_time:
            slots = np.diff(columns.slot_start[columns.team_start])
            columns = columns._replace(seconds=np.repeat(columns.duration, slots))
        history = History(columns)
        before = self.rating[columns.player]
        result = loop.replay(self.rules, history, self.state, self.ladders, in_place=True)
        self.played[columns.player] += 1
        persons = self.person[columns.player]
        self.practised[persons] += 1.0
        self._look()
        self._log.append((history.columns, result.expected, truth, before, self.rating[columns.player]))
        for index, behaviour in enumerate(self.behaviours):
            behaviour.after(self, play, self.crew[play.account] == index)
        return history.columns

    def _leave(self, joined: Flags, columns: Columns | None, truth: Floats) -> None:
        """Let players leave the game for good who are annoyed by their match, or by waiting for one in vain."""
        lost, matched = np.zeros(self.accounts, np.bool_), np.zeros(self.accounts, np.bool_)
        chance = np.zeros(self.accounts)
        if columns is not None:
            team = np.repeat(np.arange(len(columns.place)), np.diff(columns.slot_start))
            lost[columns.player], chance[columns.player] = columns.place[team] > 1, truth[team]
            matched[columns.player] = True
        self.losses[matched] = np.where(lost, self.losses + 1, 0)[matched]
        chances = Annoyance().chances(self.losses, chance, self.waited, lost, joined & ~matched)
        draws = self._stream(LEAVING, self.round).random(self.settings.players)
        gone = np.unique(self.person[joined & (draws[self.person] < chances * self.settings.leaving)])
        self.gone_at[gone] = self.round
        self.active &= ~np.isin(self.person, gone)


def _friends(rng: np.random.Generator, share: float, talent: Floats) -> Whole:
    """For each player the first member of their party, -1 for those who always play alone."""
    leader = np.full(len(talent), -1)
    order = np.argsort(talent + 0.5 * rng.standard_normal(len(talent)))
    at = 0
    while at < len(order) - 2:
        size = int(rng.integers(2, 4))
        if rng.random() < share / (share + (1.0 - share) * size):
            leader[order[at : at + size]] = order[at]
            at += size
        else:
            at += 1
    return leader


def _renumbered(parts: Sequence[Offer], teams: int) -> Offer:
    """Several offers as one, with matches numbered from 0 without gaps."""
    listed, matches = [], 0
    for part in parts:
        _, first = np.unique(part.match, return_inverse=True)
        listed.append(Offer(first + matches, (first + matches) * teams + part.team % teams, *part[2:]))
        matches += int(first.max(initial=-1)) + 1
    if not listed:
        return Offer(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    return Offer(*map(np.concatenate, zip(*listed, strict=True)))


def _flat(parts: Sequence[Floats]) -> Floats:
    return np.concatenate(parts) if parts else np.empty(0)


def _joined(parts: Sequence[Columns]) -> History:
    """One history of the rounds' columns."""
    if not parts:
        return History(Columns(*(np.zeros(1 if name.endswith("_start") else 0, int) for name in Columns._fields)))
    joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in Columns._fields}
    for name in ("team_start", "slot_start"):
        ends = np.cumsum([0, *(getattr(part, name)[-1] for part in parts)])
        rest = [getattr(part, name)[1:] + end for part, end in zip(parts, ends, strict=False)]
        joined[name] = np.concatenate([[0], *rest])
    return History(Columns(**joined))


def simulate_season(
    settings: SeasonSettings,
    rules: Rules,
    behaviours: Sequence[Behaviour] = (),
    progress: Callable[[float], None] | None = None,
) -> SeasonRecord:
    """Simulate a season, rated by these rules; each behaviour decides for a part of the culprits."""
    return Season(settings, rules, behaviours).run(progress)
