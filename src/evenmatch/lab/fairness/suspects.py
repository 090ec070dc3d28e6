"""Suspects: accounts of a ladder whose play looks like boosting, win trading, sandbagging or smurfing.

Each kind of conduct has a score, computed from the recorded matches and the odds that the rating system gave before
them. How often an honest account reaches a score is measured on simulated honest seasons of the same shape, so that a
suspect comes with a false-alarm rate. A suspect is somebody to look at, and never a verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import ceil, erfc, log10
from typing import NamedTuple

import numpy as np

from evenmatch.durations import DAY
from evenmatch.errors import InputError
from evenmatch.history import Flags, Floats, History, team_results
from evenmatch.lab.seasons.games import GAMES, Whole
from evenmatch.lab.seasons.season import simulate_season
from evenmatch.lab.seasons.settings import SeasonSettings
from evenmatch.rating import rateable
from evenmatch.systems import loop
from evenmatch.systems.system import Rules
from evenmatch.tables import MatchTable

FEWEST = 8  # matches of an account that is judged
SETTLED = 0.15  # share of the matches after which an account counts as new to a settled ladder
CONCENTRATED = 0.4  # share of an account's early leaves that one player's matches have
NEARNESS = 4.0  # how much oftener than by chance equals meet
LATE_SHARE = 0.5  # of a match: who played less of it joined late
WIDE = 0.9  # share of all defeats by a smaller margin than a crushing one
EARLY = 25  # first matches, in which a smurf shows
HONEST_SEASONS, MOST_SEASONS = 8, 100  # simulated for comparison
COMPARED = 3000  # honest accounts in them; fewer than 2,500 cannot show that a score is rare enough to be listed
FEWEST_PLAYERS, MOST_PLAYERS = 100, 600  # of these
MOST_EACH = 100  # matches per account that are judged and simulated, on average
RATE = 0.002  # share of honest accounts that are listed by mistake, over all kinds


class Table(NamedTuple):
    """What the scores need of a ladder with S slots of A accounts.

    expected, result  float64 (S,)  the team's expected score, and its score 0..1
    number            int64 (S,)    how many matches the account had played before
    start             int64 (A+1,)  first row of each account in `order`, which lists its slots in time order
    names             of the accounts
    """

    history: History
    expected: Floats
    result: Floats
    number: Whole
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


def table_of(history: History, expected: Floats, names: Sequence[str] | None = None) -> Table:
    """Arrange a rated history by account. expected: float64 (T,), as `Ratings.expected`; names: None for numbers."""
    c = history.columns
    results = team_results(c.team_start, c.place)
    order = np.argsort(c.player, kind="stable")
    start = np.concatenate(([0], np.cumsum(np.bincount(c.player, minlength=history.players))))
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order)) - np.repeat(start[:-1], np.diff(start))
    shown = [str(account) for account in range(history.players)] if names is None else names
    return Table(history, expected[history.slot_team], results[history.slot_team], number, order, start, shown)


class Evidence(NamedTuple):
    """Scores of one kind, float64 (A,), and the sentence that supports the score of an account."""

    score: Floats
    sentence: Callable[[int], str]


def smurfing(table: Table) -> Evidence:
    """How much better the first matches of an account that joined later went than its odds, in standard deviations.

    Results count, and where it is recorded the performance among the players of the match.
    """
    accounts = len(table.played)
    first = np.full(accounts, len(table.history))
    np.minimum.at(first, table.account, table.history.slot_match.astype(np.int64))
    early = (table.number < EARLY) & (first >= SETTLED * len(table.history))[table.account]
    count = np.bincount(table.account[early], minlength=accounts)
    won = np.bincount(table.account[early], table.result[early], accounts)
    due = np.bincount(table.account[early], table.expected[early], accounts)
    variance = np.bincount(table.account[early], (table.expected * (1.0 - table.expected))[early], accounts)
    score = (won - due) / np.sqrt(np.maximum(variance, 1.0))
    if table.history.largest > 2 and not np.isnan(shown := table.history.columns.performance).all():
        performance = np.bincount(table.account[early], np.nan_to_num(shown[early]), accounts)
        score = (score + performance / np.sqrt(np.maximum(count, 1)) / float(np.nanstd(shown))) / 2.0**0.5

    def sentence(account: int) -> str:
        return f"scored {won[account]:g} in its first {count[account]} matches, where {due[account]:.1f} were expected"

    return Evidence(score, sentence)


def sandbagging(table: Table) -> Evidence:
    """How unlikely an account's streaks and crushing defeats are by chance: -log10 of both probabilities, summed.

    Whoever loses on purpose does not care by how much. Streaks are those of wins and of losses.
    """
    score, streaks = np.zeros(len(table.played)), np.zeros((len(table.played), 2))
    crushed, lost = _defeats(table)
    usual = float(crushed.sum() / max(lost.sum(), 1))
    crushes, losses = (np.bincount(table.account, who, len(table.played)) for who in (crushed, lost))
    result = table.result[table.order]
    for account in np.flatnonzero(table.played >= FEWEST).tolist():
        rows = result[table.start[account] : table.start[account + 1]]
        won = rows[rows != 0.5] > 0.5
        wins, count = int(won.sum()), len(won)
        # Weak players are crushed, too, but seldom win.
        score[account] = _poisson_tail(min(int(crushes[account]), wins), usual * losses[account])
        if not 1 < wins < count - 1:
            continue
        runs = 1 + int((won[1:] != won[:-1]).sum())
        mean = 1.0 + 2.0 * wins * (count - wins) / count  # Wald and Wolfowitz 1940
        variance = (mean - 1.0) * (mean - 2.0) / (count - 1)
        score[account] -= log10(max(0.5 * erfc((mean - runs) / max(2.0 * variance, 0.5) ** 0.5), 1e-300))
        streaks[account] = count / runs, count / mean

    def sentence(account: int) -> str:
        length, expected = streaks[account]
        return (
            f"{crushes[account]:.0f} of its {losses[account]:.0f} defeats were crushing, where {usual:.0%} are usual; "
            f"wins and loses in streaks of {length:.1f} matches, where {expected:.1f} are usual for its results"
        )

    return Evidence(score, sentence)


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
    """How unlikely it is that an account met its commonest opponent so often by chance: -log10 of the probability."""
    h, played = table.history, table.played
    both, counts = np.unique(np.sort(_opponents(h), 1), axis=0, return_counts=True)
    meetings = np.bincount(both.ravel(), np.repeat(counts, 2), len(played))
    # Matchmakers pair equals: an account has as many likely opponents as it met different ones.
    usual = meetings / np.maximum(np.bincount(both.ravel(), minlength=len(played)), 8)
    score, partner = _unlikeliest(len(played), both, counts, usual[both].max(1))

    def sentence(account: int) -> str:
        other, count = partner[account].tolist()
        return f"met {table.names[other]!r} {count} times in {played[account]} matches"

    return Evidence(score, sentence)


def boosting(table: Table) -> Evidence:
    """How unlikely it is that an account quit so often in one player's matches by chance: -log10 of the probability.

    Both are suspects: who leaves, and the player whose matches are left.
    """
    h, played = table.history, table.played
    both, counts = np.unique(_left_behind(h), axis=0, return_counts=True)
    quits = np.bincount(h.columns.player[h.columns.quit], minlength=len(played))[both[:, 0]]
    kept = counts >= np.maximum(2, CONCENTRATED * quits)  # who always quits does it with everybody
    # A matchmaker pairs equals: an account meets the others more often than their share of all matches.
    share = np.minimum(NEARNESS * played[both[:, 1]] / max(len(h), 1), 0.5)
    score, partner = _unlikeliest(len(played), both[kept], counts[kept], (share * quits)[kept])

    def sentence(account: int) -> str:
        other, count = partner[account].tolist()
        return f"{table.names[other]!r} and this account were in {count} matches that one of them left early"

    return Evidence(score, sentence)


def switching(table: Table) -> Evidence:
    """How unlikely it is that an account joined the winning team late so often: -log10 of the probability."""
    h, played = table.history, table.played
    c = h.columns
    length = c.duration[h.slot_match]
    late = ~c.quit & (c.seconds < LATE_SHARE * length) & (table.result > 0.5)
    count = np.bincount(table.account, late, len(played))
    usual = float(late.mean()) if len(late) else 0.0
    usual = max(usual / 4.0, float(np.median(count / np.maximum(played, 1))), 1e-3)  # others may switch, too
    score = np.array([_poisson_tail(int(n), usual * k) for n, k in zip(count.tolist(), played.tolist(), strict=True)])

    def sentence(account: int) -> str:
        return f"played only the end of {count[account]:.0f} of {played[account]} matches, for the team that won"

    return Evidence(score, sentence)


def _left_behind(h: History) -> Whole:
    """Pairs of an account that quit and another account in the same match, int64 (N, 2)."""
    listed = []
    slots = h.match_slots
    for quitter in np.flatnonzero(h.columns.quit).tolist():
        match = h.slot_match[quitter]
        others = h.columns.player[slots[match] : slots[match + 1]].astype(np.int64)
        others = others[others != h.columns.player[quitter]]
        listed.append(np.stack((np.full(len(others), h.columns.player[quitter], np.int64), others), 1))
    return np.concatenate(listed) if listed else np.empty((0, 2), np.int64)


def _unlikeliest(accounts: int, pairs: Whole, counts: Whole, usual: Floats) -> tuple[Floats, Whole]:
    """For each account -log10 of the probability of its least likely pair, and the other of that pair with the count.

    pairs  int64 (N, 2);  counts  int64 (N,)  events of each pair;  usual  float64 (N,)  events that chance brings
    """
    score, partner = np.zeros(accounts), np.full((accounts, 2), -1)
    for (first, second), count, mean in zip(pairs.tolist(), counts.tolist(), usual.tolist(), strict=True):
        unlikely = _poisson_tail(count, mean)
        for account, other in ((first, second), (second, first)):
            if unlikely > score[account]:
                score[account], partner[account] = unlikely, (other, count)
    return score, partner


def _opponents(h: History) -> Whole:
    """Pairs of accounts that played against each other in duels, int64 (N, 2); larger matches say too little."""
    slots = h.match_slots
    duels = np.flatnonzero((np.diff(slots) == 2) & (np.diff(h.columns.team_start) == 2))
    return np.stack((h.columns.player[slots[duels]], h.columns.player[slots[duels] + 1]), 1).astype(np.int64)


def _poisson_tail(count: int, mean: float) -> float:
    """-log10 of the probability of at least `count` events where `mean` are expected."""
    if count == 0 or mean <= 0.0:
        return 0.0
    k = np.arange(count, count + 200)
    log = k * np.log(mean) - mean - np.cumsum(np.log(np.arange(1, count + 200)))[count - 1 : count + 199]
    top = float(log.max())
    return max(0.0, -(top + float(np.log(np.exp(log - top).sum()))) / float(np.log(10.0)))


KINDS: Mapping[str, Callable[[Table], Evidence]] = {
    "smurf": smurfing,
    "sandbagger": sandbagging,
    "win trader": win_trading,
    "booster": boosting,
    "win switcher": switching,
}


class Suspect(NamedTuple):
    """An account to look at.

    false_alarms  share of honest accounts of simulated seasons with at least this score
    """

    account: int
    kind: str
    score: float
    false_alarms: float
    evidence: str

    @property
    def rarity(self) -> str:
        """The false-alarm rate as "1 in 2,400", where the second number is rounded down to two digits."""
        accounts = int(1.0 / self.false_alarms + 1e-6)
        unit = 10 ** max(len(str(accounts)) - 2, 0)
        return f"1 in {accounts // unit * unit:,}"


class HonestScores(NamedTuple):
    """Scores of honest accounts by kind, ascending: what suspects are compared with."""

    by_kind: Mapping[str, Floats]

    def false_alarms(self, kind: str, score: Floats) -> Floats:
        """The share of honest accounts with at least this score; never 0, as no number of them proves that."""
        known = self.by_kind[kind]
        above = len(known) - known.searchsorted(score, "left")
        share: Floats = (above.astype(np.float64) + 1.0) / (len(known) + 1.0)
        return share


def honest_scores(tables: Sequence[Table]) -> HonestScores:
    """Scores of all accounts of honest seasons."""
    return HonestScores(
        {
            kind: np.sort(np.concatenate([judge(table).score[judged(table)] for table in tables]))
            for kind, judge in KINDS.items()
        }
    )


def judged(table: Table) -> Flags:
    """The accounts with enough matches."""
    return table.played >= FEWEST


def suspects(table: Table, honest: HonestScores, rate: float = RATE) -> list[Suspect]:
    """Accounts whose score an honest account reaches with a probability of at most `rate`, over all kinds together."""
    found = []
    for kind, judge in KINDS.items():
        evidence = judge(table)
        alarms = honest.false_alarms(kind, evidence.score)
        for account in np.flatnonzero(judged(table) & (alarms <= rate / len(KINDS))).tolist():
            score = float(evidence.score[account])
            found.append(Suspect(account, kind, score, float(alarms[account]), evidence.sentence(account)))
    return sorted(found, key=lambda suspect: suspect.false_alarms)


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
    settings, share = like(table.history), float(judged(table)[table.played > 0].mean())
    if not share:
        return []
    seasons = min(max(HONEST_SEASONS, ceil(COMPARED / (share * settings.players))), MOST_SEASONS)
    tables = []
    for index in range(seasons):

        def report(share: float, before: int = index) -> None:
            if progress is not None:
                progress((before + share) / seasons)

        record = simulate_season(replace(settings, seed=index + 1), rules, progress=report)
        tables.append(table_of(record.history, record.expected))
    return suspects(table, honest_scores(tables))


def first_judged(history: History) -> int:
    """Index of the first of the latest matches, in which accounts have at most MOST_EACH matches on average."""
    player = history.columns.player
    slots = MOST_EACH * int((np.bincount(player) > 0).sum())
    return int(history.match_slots.searchsorted(len(player) - slots))


def like(history: History) -> SeasonSettings:
    """Settings of seasons that resemble a recorded ladder: form of match, players, matches of each, and weeks."""
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
    return SeasonSettings(
        game=game.name, players=players, matches=max(1, round(players * each / game.players)), weeks=weeks
    )
