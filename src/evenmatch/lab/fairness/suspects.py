"""Suspects: accounts of a ladder whose play looks like boosting, smurfing or other unfair conduct.

Each kind of conduct has a score: -log10 of the probability that the recorded matches show so much of it by chance.
Simulated honest seasons of the same shape tell how often an honest account reaches a score, so a suspect comes with a
false-alarm rate. A suspect is somebody to look at, and never a verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import ceil, erfc, log, log10
from typing import NamedTuple

import numpy as np

from evenmatch.durations import DAY, SECOND
from evenmatch.errors import InputError
from evenmatch.history import Flags, Floats, History, ranges, team_results
from evenmatch.lab.seasons.games import GAMES, Whole
from evenmatch.lab.seasons.season import simulate_season
from evenmatch.lab.seasons.settings import SeasonSettings
from evenmatch.rating import rateable
from evenmatch.systems import loop
from evenmatch.systems.system import Rules
from evenmatch.tables import MatchTable

FEWEST = 8  # matches of an account that is judged
PRIOR = 5.0  # matches that the usual share of early leaves counts for where little is known
LATE_SHARE = 0.5  # of a match: who played less of it joined late
WIDE = 0.9  # share of all defeats by a smaller margin than a crushing one
CERTAIN = 0.98  # the highest probability with which an account plays at a given moment of a day
HONEST_SEASONS, MOST_SEASONS = 8, 100  # simulated for comparison
COMPARED = 3000  # honest accounts in them; fewer than 1,500 cannot show that a score is rare enough to be listed
FEWEST_PLAYERS, MOST_PLAYERS = 100, 600  # of these
SPARSEST = 0.15  # share of the players who are present at a time in these seasons
TAIL = 50  # one in so many honest scores is in the tail
HABITS: Sequence[Mapping[str, float]] = (  # of the players, one after the other: no ladder shows them
    {},
    {"learning": 2.0},
    {"days_off": 0.7},
    {"parties": 0.8},
    {"eagerness": 1.5},
)
MOST_EACH = 100  # matches per account that are judged and simulated, on average
RATE = 0.002  # share of honest accounts that are listed by mistake, over all kinds


class Table(NamedTuple):
    """What the scores need of a ladder with S slots of A accounts.

    expected, result  float64 (S,)  the team's expected score, and its score 0..1
    start             int64 (A+1,)  first row of each account in `order`, which lists its slots in time order
    names             of the accounts
    """

    history: History
    expected: Floats
    result: Floats
    order: Whole
    start: Whole
    names: Sequence[str]

    @property
    def account(self) -> Whole:
        """The account of each slot."""
        return self.history.columns.player.astype(np.int64)

    @property
    def played(self) -> Whole:
        """Matches of each account."""
        return np.diff(self.start)

    def total(self, of_slots: Flags | Floats) -> Floats:
        """The sum over the slots of each account."""
        return np.bincount(self.account, of_slots, len(self.played)).astype(np.float64)

    def rows(self, account: int) -> Whole:
        """The slots of an account in time order."""
        return self.order[self.start[account] : self.start[account + 1]]


def table_of(history: History, expected: Floats, names: Sequence[str] | None = None) -> Table:
    """Arrange a rated history by account. expected: float64 (T,), as `Ratings.expected`; names: None for numbers."""
    c = history.columns
    results = team_results(c.team_start, c.place)
    start = np.concatenate(([0], np.cumsum(np.bincount(c.player, minlength=history.players))))
    shown = [str(account) for account in range(history.players)] if names is None else names
    team = history.slot_team
    return Table(history, expected[team], results[team], np.argsort(c.player, kind="stable"), start, shown)


class Evidence(NamedTuple):
    """Scores of one kind, float64 (A,), and the sentence that supports the score of an account."""

    score: Floats
    sentence: Callable[[int], str]


def alternating(table: Table) -> Evidence:
    """How unlikely it is that two accounts never play at once on the days of both.

    One person cannot play on two accounts at the same time, and both accounts rest on that person's days off.
    """
    start, at, own = _moments(table.history)
    possible, days = judged(table), []
    for shift in range(0, DAY, DAY // 4):  # nobody knows when a player's day begins
        day = np.unique((at + shift) // DAY, return_inverse=True)[1]
        times = np.zeros((len(possible), int(day[-1]) + 1))
        np.add.at(times, (own[:, 0], day[own[:, 1]]), 1.0)
        days.append((times, -np.log10(1.0 - np.minimum(times / np.bincount(day), CERTAIN))))
    begin = own[:, 0].searchsorted(np.arange(len(possible) + 1))
    present = own[np.argsort(own[:, 1], kind="stable"), 0]
    score, partner = np.zeros(len(possible)), np.full((len(possible), 2), -1)
    for account in np.flatnonzero(possible).tolist():
        unlikely = np.min([apart @ times[account] for times, apart in days], 0) - log10(possible.sum())
        unlikely[~possible] = 0.0
        unlikely[present[ranges(start, own[begin[account] : begin[account + 1], 1])]] = 0.0
        other = int(unlikely.argmax())
        pair = np.array([account, other])
        pair = pair[score[pair] < unlikely[other]]
        score[pair], partner[pair, 0] = unlikely[other], account + other - pair
        partner[pair, 1] = (days[0][0][[account, other]] > 0.0).all(0).sum()

    def sentence(account: int) -> str:
        other, count = partner[account].tolist()
        return f"played on {count} days on which {table.names[other]!r} played, and never at the same time"

    return Evidence(score, sentence)


def _moments(h: History) -> tuple[Whole, Whole, Whole]:
    """Cut time into moments as long as a usual match: (start, at, own).

    own    int64 (N, 2)  account and moment of each appearance, in order of both
    start  int64         first appearance of each moment, if appearances are in order of the moments
    at     int64         when each moment begins, microseconds
    """
    length = int(np.nanmedian(np.append(h.columns.duration, 60.0)) * SECOND)
    at, moment = np.unique(h.columns.time // length, return_inverse=True)
    own = np.unique(np.stack((h.columns.player.astype(np.int64), moment[h.slot_match]), 1), axis=0)
    return np.concatenate(([0], np.cumsum(np.bincount(own[:, 1], minlength=len(at))))), at * length, own


def sandbagging(table: Table) -> Evidence:
    """How unlikely an account's streaks, crushing defeats and bad performances are: the sum of three logarithms.

    A player who loses on purpose does not care by how much. Streaks are those of wins and of losses.
    """
    crushed, lost = _defeats(table)
    usual = float(crushed.sum() / max(lost.sum(), 1))
    crushes, losses = table.total(crushed), table.total(lost)
    # Weak players are crushed, too, but seldom win.
    score = _unlikely(np.minimum(crushes, table.total(table.result > 0.5)), losses, usual) + _unevenness(table)
    order = table.order[table.result[table.order] != 0.5]
    account, won = table.account[order], table.result[order] > 0.5
    wins, count = (np.bincount(account, what, len(score)) for what in (won, np.ones(len(won))))
    runs = 1.0 + np.bincount(account[1:], (won[1:] != won[:-1]) & (account[1:] == account[:-1]), len(score))
    mean = 1.0 + 2.0 * wins * (count - wins) / np.maximum(count, 1.0)  # Wald and Wolfowitz 1940
    variance = (mean - 1.0) * (mean - 2.0) / np.maximum(count - 1.0, 1.0)
    is_mixed = np.minimum(wins, count - wins) > 1
    score += np.where(is_mixed, _rare((mean - runs) / np.sqrt(np.maximum(variance, 0.25))), 0.0)

    def sentence(one: int) -> str:
        return (
            f"{crushes[one]:.0f} of its {losses[one]:.0f} defeats were crushing, where {usual:.0%} are usual; wins and "
            f"loses in streaks of {count[one] / runs[one]:.1f} matches, where {count[one] / mean[one]:.1f} are usual "
            "for its results"
        )

    return Evidence(score, sentence)


def _unevenness(table: Table) -> Floats:
    """How unlikely it is that an account's recorded performance falls so far below its own mean, so often."""
    shown, count = table.history.columns.performance, np.maximum(table.played, 1)
    if np.isnan(shown).any() or not judged(table).any():
        return np.zeros(len(count))
    # Only below: a player who meets somebody throwing the match stands out above.
    spread = table.total(np.minimum(shown - (table.total(shown) / count)[table.account], 0.0) ** 2) / count
    usual = max(float(np.median(spread[judged(table)])), 1e-9)
    return _rare((spread / usual - 1.0) * np.sqrt(count / 5.0))  # 5: of the square of half a normal number


def _defeats(table: Table) -> tuple[Flags, Flags]:
    """For each slot whether it was crushed (by one of the widest margins, or the last of many) and whether it lost."""
    c = table.history.columns
    if not (np.diff(c.team_start) == 2).all():
        return table.result == 0.0, table.result < 1.0
    margin, lost = np.abs(c.team_score[::2] - c.team_score[1::2])[table.history.slot_match], table.result < 0.5
    crushed = lost & (margin >= np.quantile(margin[lost], WIDE)) if lost.any() else lost
    is_telling = crushed.sum() <= 0.5 * lost.sum()  # else most margins are equal, or none is known
    return crushed & is_telling, lost


def win_trading(table: Table) -> Evidence:
    """How unlikely the results of two duellists against each other are.

    Traders win in turn, and the loser does not care by how much.
    """
    h = table.history
    first = h.match_slots[np.flatnonzero((np.diff(h.match_slots) == 2) & (np.diff(h.columns.team_start) == 2))]
    pair = np.sort(np.stack((table.account[first], table.account[first + 1]), 1), 1)
    both, which, counts = np.unique(pair, axis=0, return_inverse=True, return_counts=True)
    defeats = _defeats(table)[0]
    crushed, winner = defeats[first] | defeats[first + 1], table.account[first + (table.result[first] < 0.5)]
    order = np.argsort(which, kind="stable")
    again = which[order[1:]] == which[order[:-1]]
    turned = again & (winner[order[1:]] != winner[order[:-1]])
    turns, crushes = np.bincount(which[order[1:]], turned, len(both)), np.bincount(which, crushed, len(both))
    unlikely = _unlikely(turns, counts - 1, 0.5) + _unlikely(crushes, counts, crushed.sum() / max(len(first), 1))
    score, partner = _unlikeliest(table, both, np.arange(len(both)), unlikely)

    def sentence(account: int) -> str:
        other, at = partner[account].tolist()
        return (
            f"met {table.names[other]!r} {counts[at]} times in {table.played[account]} matches: the winner changed "
            f"{turns[at]:.0f} times, and {crushes[at]:.0f} defeats were crushing"
        )

    return Evidence(score, sentence)


def boosting(table: Table) -> Evidence:
    """How unlikely it is that an account quits this often in one player's matches and this rarely in others.

    Both are suspects: the account that leaves, and the player whose matches it leaves.
    """
    h, has_quit = table.history, table.history.columns.quit
    quits, usual = table.total(has_quit), _usual_share(table, table.total(has_quit))
    found = []
    for account in np.flatnonzero(quits > 1).tolist():
        match = h.slot_match[table.rows(account)]
        others, size = table.account[ranges(h.match_slots, match)], np.diff(h.match_slots)[match]
        met = np.bincount(others, minlength=len(quits)).astype(np.float64)
        left = np.bincount(others, np.repeat(has_quit[table.rows(account)], size), len(quits))
        left[account] = 0.0
        elsewhere = (quits[account] - left + PRIOR * usual) / (table.played[account] - met + PRIOR)
        unlikely = _unlikely(left, met, np.maximum(elsewhere, usual))
        found += [(account, other, left[other], unlikely[other]) for other in np.flatnonzero(left > 1.0).tolist()]
    pairs = np.array(found, np.float64).reshape(-1, 4)
    score, partner = _unlikeliest(table, pairs[:, :2].astype(np.int64), pairs[:, 2].astype(np.int64), pairs[:, 3])

    def sentence(account: int) -> str:
        other, count = partner[account].tolist()
        return f"{table.names[other]!r} and this account were in {count} matches that one of them left early"

    return Evidence(score, sentence)


def quitting(table: Table) -> Evidence:
    """How unlikely it is that an account leaves this many matches early."""
    quits = table.total(table.history.columns.quit)
    usual = _usual_share(table, quits)

    def sentence(account: int) -> str:
        return f"left {quits[account]:.0f} of {table.played[account]} matches early, where {usual:.1%} are usual"

    return Evidence(_unlikely(quits, table.played, usual), sentence)


def switching(table: Table) -> Evidence:
    """How unlikely it is that an account joins the winning team late this often."""
    c = table.history.columns
    is_late = ~c.quit & (c.seconds < LATE_SHARE * c.duration[table.history.slot_match])
    count = table.total(is_late & (table.result > 0.5))

    def sentence(account: int) -> str:
        return f"played only the end of {count[account]:.0f} of {table.played[account]} matches, for the team that won"

    return Evidence(_unlikely(count, table.played, _usual_share(table, count)), sentence)


def dodging(table: Table) -> Evidence:
    """How unlikely it is that an account is the underdog this rarely in matches with close odds."""
    away = np.abs(table.expected - 0.5)
    close = away <= np.quantile(away, WIDE)  # the best players are seldom underdogs in the others
    under, count = table.total(close & (table.expected < 0.5)), table.total(close)

    def sentence(account: int) -> str:
        return f"was the underdog in {under[account]:.0f} of {count[account]:.0f} matches with close odds"

    return Evidence(_unlikely(count - under, count, 1.0 - float(under.sum()) / max(float(count.sum()), 1.0)), sentence)


def padding(table: Table) -> Evidence:
    """How unlikely it is that an account performs so well for its results; players differ, which is part of it."""
    shown, count, result = table.history.columns.performance, np.maximum(table.played, 1), table.result - 0.5
    rest = np.nan_to_num(shown - result * (shown @ result) / max(float(result @ result), 1e-9))
    mean, luck = table.total(rest) / count, float(rest.var()) / count
    known: Floats = mean[judged(table)] if judged(table).any() else mean
    usual = float(np.median(known))
    among = (1.4826 * float(np.median(np.abs(known - usual)))) ** 2 - float(np.median(luck))
    score = _rare((mean - usual) / np.sqrt(luck + max(among, 0.0) + 1e-12))

    def sentence(account: int) -> str:
        return f"its performance is {mean[account]:+.2f} beyond its results on average, where {usual:+.2f} is usual"

    return Evidence(np.where(mean > usual, score, 0.0), sentence)


def _usual_share(table: Table, count: Floats) -> float:
    """The share of matches with an event, without the tenth of the accounts that has the most; at least 0.001."""
    share = count / np.maximum(table.played, 1)
    usual = share <= np.quantile(share[judged(table)], 0.9) if judged(table).any() else share < 0.0
    return max(float(count[usual].sum() / max(table.played[usual].sum(), 1)), 1e-3)


def _unlikeliest(table: Table, pairs: Whole, told: Whole, unlikely: Floats) -> tuple[Floats, Whole]:
    """For each account the score of its least likely pair, and the other of that pair with what is told of it.

    pairs  int64 (N, 2);  told  int64 (N,)  a number of each pair;  unlikely  float64 (N,)  its score
    """
    score, partner = np.zeros(len(table.played)), np.full((len(table.played), 2), -1)
    for at in np.argsort(unlikely, kind="stable").tolist():
        score[pairs[at]] = unlikely[at]
        partner[pairs[at], 0], partner[pairs[at], 1] = pairs[at, ::-1], told[at]
    return score, partner


def _unlikely(count: Floats | Whole, trials: Floats | Whole, usual: Floats | float) -> Floats:
    """-log10 of the probability of at least `count` events in these trials, each of which has the probability `usual`.

    By Chernoff's bound; 0 for no more events than usual.
    """
    share, p = count / np.maximum(trials, 1), np.clip(usual, 1e-9, 1.0 - 1e-9)
    rest = np.clip(1.0 - share, 1e-9, 1.0)
    each = share * np.log10(np.maximum(share, 1e-9) / p) + rest * np.log10(rest / (1.0 - p))
    return np.where(share > p, trials * each, 0.0)


def _rare(deviations: Floats) -> Floats:
    """-log10 of the probability that a normal variable exceeds its mean by this many standard deviations."""
    return np.array([-log10(max(0.5 * erfc(z / 2.0**0.5), 1e-300)) for z in deviations.tolist()])


KINDS: Mapping[str, Callable[[Table], Evidence]] = {
    "smurf": alternating,
    "sandbagger": sandbagging,
    "win trader": win_trading,
    "booster": boosting,
    "win switcher": switching,
    "quitter": quitting,
    "queue dodger": dodging,
    "stat padder": padding,
}


class Suspect(NamedTuple):
    """An account to look at.

    false_alarms  share of honest accounts of simulated seasons that stand out as much, at most
    """

    account: int
    kind: str
    score: float
    false_alarms: float
    evidence: str

    @property
    def rarity(self) -> str:
        """The false-alarm rate as "1 in 1,200", where the second number is rounded down to two digits."""
        accounts = int(1.0 / self.false_alarms + 1e-6)
        unit = 10 ** max(len(str(accounts)) - 2, 0)
        return f"1 in {accounts // unit * unit:,}"


class HonestScores(NamedTuple):
    """Scores of honest accounts by kind, and the largest surprise of each account, all ascending."""

    by_kind: Mapping[str, Floats]
    surprises: Floats

    def false_alarms(self, kind: str, score: Floats) -> Floats:
        """The share of honest accounts that surprise as much by any kind: the upper end of its 95% interval."""
        above = len(self.surprises) - self.surprises.searchsorted(_surprise(self.by_kind[kind], score), "left") + 1.0
        share: Floats = np.minimum((above + 2.0 * np.sqrt(above)) / len(self.surprises), 1.0)
        return share


def honest_scores(tables: Sequence[Table]) -> HonestScores:
    """Scores of all accounts of honest seasons."""
    scores = {kind: np.concatenate([judge(t).score[judged(t)] for t in tables]) for kind, judge in KINDS.items()}
    by_kind = {kind: np.sort(score) for kind, score in scores.items()}
    return HonestScores(by_kind, np.sort(np.max([_surprise(by_kind[kind], scores[kind]) for kind in KINDS], 0)))


def _surprise(known: Floats, score: Floats) -> Floats:
    """-log10 of the share of honest accounts with at least this score, which makes kinds comparable; 0 up to a limit.

    known  scores of honest accounts, ascending
    Beyond the limit the tail is exponential, and never lighter than that of -log10 of a probability.
    """
    limit = known[-1 - len(known) // TAIL]
    beyond = known[known > limit] - limit
    excess = max(float(beyond.sum()) / max(len(beyond), 1), 1.0 / log(10.0))
    rare = log10((len(known) + 1.0) / (len(beyond) + 1.0)) + (score - limit) / excess / log(10.0)
    return np.where(score > limit, rare, 0.0)


def judged(table: Table) -> Flags:
    """The accounts with enough matches."""
    return table.played >= FEWEST


def suspects(table: Table, honest: HonestScores, rate: float = RATE) -> list[Suspect]:
    """Accounts whose score an honest account reaches with a probability of at most `rate`, over all kinds together."""
    found = []
    for kind, judge in KINDS.items():
        evidence = judge(table)
        alarms = honest.false_alarms(kind, evidence.score)
        for account in np.flatnonzero(judged(table) & (alarms <= rate)).tolist():
            score = float(evidence.score[account])
            found.append(Suspect(account, kind, score, float(alarms[account]), evidence.sentence(account)))
    return sorted(found, key=lambda suspect: (suspect.false_alarms, -suspect.score))


def ladder_suspects(
    matches: MatchTable, rules: Rules, progress: Callable[[float], None] | None = None
) -> list[Suspect]:
    """Suspects of a recorded ladder, compared with honest seasons of its size and its form of match.

    The whole ladder is rated, and its latest matches are judged.
    progress  called with the share that is done
    Raises InputError if the rules cannot rate the matches or there are none.
    """
    matches = rateable(matches, rules)
    if not len(matches):
        raise InputError("there are no matches to look at; expected one or more")
    history = matches.history
    rated = loop.replay(rules, history, rules.newcomers(history.players))
    first = first_judged(history)
    expected = rated.expected[history.columns.team_start[first] :]
    table = table_of(history.take(slice(first, None)), expected, matches.player.to_pylist())
    return suspects(table, honest_scores_like(table, rules, progress)) if judged(table).any() else []


def honest_scores_like(table: Table, rules: Rules, progress: Callable[[float], None] | None = None) -> HonestScores:
    """Scores in simulated honest seasons that resemble a recorded one, under several habits of the players."""
    settings, tables = like(table.history), []
    share = float(judged(table)[table.played > 0].mean())
    seasons = min(max(HONEST_SEASONS, ceil(COMPARED / (share * settings.players))), MOST_SEASONS)
    for index in range(seasons):

        def report(share: float, before: int = index) -> None:
            if progress is not None:
                progress((before + share) / seasons)

        habits = replace(settings, seed=index + 1, **HABITS[index % len(HABITS)])  # type: ignore[arg-type]  # as declared
        record = simulate_season(habits, rules, progress=report)
        tables.append(table_of(record.history, record.expected))
    return honest_scores(tables)


def first_judged(history: History) -> int:
    """Index of the first of the latest matches, in which accounts have at most MOST_EACH matches on average."""
    player = history.columns.player
    slots = MOST_EACH * int((np.bincount(player) > 0).sum())
    return int(history.match_slots.searchsorted(len(player) - slots))


def like(history: History) -> SeasonSettings:
    """Settings of seasons that resemble a recorded ladder: form of match, players, matches, weeks, share present."""
    teams, size = (
        int(np.median(np.diff(starts))) for starts in (history.columns.team_start, history.columns.slot_start)
    )
    fitting = [game for game in GAMES.values() if (game.teams > 2) == (teams > 2)]
    game = min(fitting, key=lambda game: abs(game.team_size - size))
    active = int((np.bincount(history.columns.player) > 0).sum())
    players = min(max(active, FEWEST_PLAYERS), MOST_PLAYERS)
    each = min(len(history.columns.player) / active, MOST_EACH)
    time = history.columns.time
    weeks = float(np.clip((time[-1] - time[0]) / (7 * DAY), 1.0, 520.0))
    matches = max(1, round(players * each / game.players))
    start, _, own = _moments(history)
    usual = SeasonSettings()
    present = len(own) / (len(start) - 1) / active / (1.0 - usual.newcomers / 2)
    present = float(np.clip(present, max(SPARSEST, 2.0 * game.players / players), 1.0))
    return replace(usual, game=game.name, players=players, matches=matches, weeks=weeks, present=present)
