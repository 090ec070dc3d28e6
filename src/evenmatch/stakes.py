"""Stakes: the rating change that a win, a draw, a loss or quitting would bring each player of a line-up.

Every outcome is rated as a match by the kernels of the ladder's system, from the players' present states. If the match
then goes as assumed, the receipt shows the same change, bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from evenmatch.errors import InputError
from evenmatch.history import NO_ENTRIES, Columns, Entries, Flags, Floats, History, Integers
from evenmatch.rating import check_range
from evenmatch.stake_assumptions import StakeAssumptions
from evenmatch.systems import loop
from evenmatch.systems.forecasts import LineUpContext
from evenmatch.systems.system import Records, Rules


class OutcomeNumbers(NamedTuple):
    """A number for each outcome of a match for one player.

    win, draw, loss  of the player's team; with three or more teams: first place, all level, last place
    quit             the player leaves early, and the team loses
    """

    win: float
    draw: float
    loss: float
    quit: float


@dataclass(frozen=True)
class PlayerStakes:
    """The stakes of one player of a line-up.

    team    counted from 0
    before  the rating before the match, as it will appear on the receipt
    after   the rating after it, for each outcome
    """

    player: str
    team: int
    before: float
    after: OutcomeNumbers

    @property
    def change(self) -> OutcomeNumbers:
        """How much the rating would change, for each outcome."""
        return OutcomeNumbers(*(after - self.before for after in self.after))


@dataclass(frozen=True)
class Stakes:
    """The stakes of a line-up.

    players      in the order of the line-up
    assumptions  about the match;  sentences  the assumptions and the meaning of the outcomes in words
    """

    players: tuple[PlayerStakes, ...]
    assumptions: StakeAssumptions
    sentences: tuple[str, ...]


class Cases(NamedTuple):
    """Possible matches of one line-up.

    places   int32 (M, T)  place of each team
    quitter  int32 (M,)    index of the player who quits, -1 for none
    """

    places: Integers
    quitter: Integers

    def label(self, case: int, names: Sequence[str]) -> str:
        """Describe a case, for messages."""
        if self.quitter[case] >= 0:
            return f"{names[self.quitter[case]]} quits"
        if (self.places[case] == 1).all():
            return "a draw"
        return f"teams finish in the order {(np.argsort(self.places[case]) + 1).tolist()}"


def check_players(names: Sequence[str], players: Sequence[str] | None) -> list[int]:
    """Indices of the chosen players in a line-up (None: all players), in line-up order.

    Raises InputError for a player who is not in the line-up.
    """
    if players is None:
        return list(range(len(names)))
    wanted = set(players)
    stranger = next((player for player in players if player not in names), None)
    if stranger is not None:
        listed = ", ".join(map(repr, names[:20])) + (", …" if len(names) > 20 else "")
        raise InputError(f"{stranger!r} is not in the line-up, so there are no stakes; expected one of {listed}")
    return [index for index, name in enumerate(names) if name in wanted]


def stakes(
    by: Rules,
    state: Records,
    names: Sequence[str],
    sizes: Sequence[int],
    time: int,
    assumptions: StakeAssumptions,
    chosen: Sequence[int],
    ladders: Records | None = None,
    context: LineUpContext | None = None,
) -> Stakes:
    """The stakes of the chosen players (indices) of a line-up, in a match that ends at a time in microseconds.

    state, names  of the players, team after team;  sizes  of the teams
    ladders       the records of the pool, of the ladder and of context values; None: before the first match
    context       what they play on; None: nothing is known
    Raises InputError if the system cannot rate the match assumed, RatingRangeError if a rating leaves its range.
    """
    team_of = np.repeat(np.arange(len(sizes)), sizes)
    ladders = by.ladders() if ladders is None else ladders
    offsets = by.offsets(0) if context is None else context.offsets.take(context.offset)
    entry = NO_ENTRIES if context is None else context.entry
    level = Cases(np.ones((1, len(sizes)), np.int32), np.full(1, -1, np.int32))
    strength = _replay(by, state, ladders, offsets, entry, names, sizes, time, assumptions, level).expected
    teams = sorted({int(team_of[index]) for index in chosen})
    places = [_places(len(sizes), team, strength, first=first) for first in (True, False) for team in teams]
    places += [_places(len(sizes), int(team_of[index]), strength, first=False) for index in chosen]
    quitter = [-1] * (1 + 2 * len(teams)) + list(chosen)
    cases = Cases(np.array([level.places[0], *places]), np.array(quitter, np.int32))
    result = _replay(by, state, ladders, offsets, entry, names, sizes, time, assumptions, cases)
    assert result.journal is not None
    shape = len(quitter), len(names)
    before, after = result.journal.before.reshape(shape), result.journal.after.reshape(shape)
    listed = []
    for row, index in enumerate(chosen):
        team = int(team_of[index])
        win = 1 + teams.index(team)
        outcomes = (win, 0, win + len(teams), 1 + 2 * len(teams) + row)
        rating = OutcomeNumbers(*(float(after[case, index]) for case in outcomes))
        listed.append(PlayerStakes(names[index], team, float(before[0, index]), rating))
    return Stakes(tuple(listed), assumptions, tuple(_sentences(by, len(sizes), assumptions)))


def turned_around(by: Rules, match: History, state: Records) -> dict[tuple[int, str], Floats]:
    """Every player's rating after a match in which one team finished otherwise, float64 (S,), by team and result.

    match  a single match;  state  the records of its players at time 0, in the order of its slots
    The results are "win" and "loss" if there are two teams, which then also swap their scores. Otherwise they are
    "first", or "last" for a team that did finish first, and that team's score is unknown; both if all teams tied.
    """
    place, score = match.columns.place, match.columns.team_score
    two, level = len(place) == 2, place.min() == place.max()
    wanted = [(team, True) for team in range(len(place)) if place[team] > place.min() or level]
    wanted += [(team, False) for team in range(len(place)) if place[team] == place.min()]
    tiled = match.take(np.zeros(len(wanted), np.int64)).columns
    places, scores = np.tile(place + 1, (len(wanted), 1)), np.tile(score[::-1], (len(wanted), 1))
    for row, (team, ahead) in enumerate(wanted):
        places[row, team] = 1 if ahead else place.max() + 2
        if not two or level:
            scores[row] = np.where(np.arange(len(place)) == team, np.nan, score)
    columns = tiled._replace(
        time=np.zeros_like(tiled.time),
        place=places.ravel(),
        team_score=scores.ravel(),
        player=np.arange(len(tiled.player), dtype=np.int32),
        keep=np.ones_like(tiled.keep),
        pool=np.zeros_like(tiled.pool),
        ladder=np.ones_like(tiled.ladder),
    )
    result = loop.replay(by, History(columns), np.tile(state, len(wanted)), journal=True)
    assert result.journal is not None
    names = ("win", "loss") if two else ("first", "last")
    keys = [(team, names[0] if ahead else names[1]) for team, ahead in wanted]
    return dict(zip(keys, result.journal.after.reshape(len(wanted), -1), strict=True))


def _places(count: int, team: int, strength: Floats, *, first: bool) -> Integers:
    """Places in which this team comes first or last and the others follow the order of their expected scores."""
    others = sorted((other for other in range(count) if other != team), key=lambda other: -strength[other])
    order = [team, *others] if first else [*others, team]
    places = np.empty(count, np.int32)
    places[order] = np.arange(1, count + 1)
    return places


def _replay(
    by: Rules,
    state: Records,
    ladders: Records,
    offsets: Records,
    entry: Entries,
    names: Sequence[str],
    sizes: Sequence[int],
    time: int,
    assumptions: StakeAssumptions,
    cases: Cases,
) -> loop.Replay:
    """Rate every case from the same state, with the checks of a reported match."""
    history = _history(sizes, time, assumptions, cases, len(ladders) - 2, entry)
    refused = next(iter(by.system.refusals(history.columns, by.parameters)), None)
    if refused is not None:
        raise InputError(f"no stakes for this line-up: {refused[1]}")
    repeated = np.tile(state, len(cases.quitter))
    learned = np.tile(ladders, len(cases.quitter)), np.tile(offsets, len(cases.quitter))
    result = loop.replay(by, history, repeated, *learned, journal=True)
    check_range(
        by,
        history,
        repeated,
        result,
        lambda row: names[row % len(names)],
        lambda case: cases.label(case, names),
    )
    return result


def _history(
    sizes: Sequence[int],
    time: int,
    a: StakeAssumptions,
    cases: Cases,
    contexts: int = 0,
    entry: Entries = NO_ENTRIES,
) -> History:
    """The cases as matches, each with its own copies of all records. contexts: number of context columns."""
    matches, teams = cases.places.shape
    team_of = np.repeat(np.arange(teams), sizes)
    slots = len(team_of)
    first = (2 + contexts) * np.arange(matches, dtype=np.int32)  # record of each match
    quit_early: Flags = np.arange(slots) == cases.quitter[:, None]
    played = np.where(quit_early, a.quit_after, 1.0)
    team_score = a.win_score + (a.loss_score - a.win_score) * (cases.places - 1) / (teams - 1)
    seconds = np.nan if a.seconds is None else a.seconds
    performance = np.nan if a.performance is None else a.performance
    return History(
        Columns(
            time=np.full(matches, time),
            team_start=np.arange(matches + 1) * teams,
            place=cases.places.ravel(),
            team_score=team_score.ravel(),
            slot_start=np.concatenate(([0], np.cumsum(np.tile(sizes, matches)))),
            player=np.arange(matches * slots),
            score=(team_score[:, team_of] * played).ravel(),
            seconds=(seconds * played).ravel(),
            performance=np.full(matches * slots, performance),
            quit=quit_early.ravel(),
            duration=np.full(matches, seconds),
            keep=np.ones(matches * slots, np.bool_),
            pool=first,
            ladder=first + 1,
            context=(first[:, None] + np.arange(2, 2 + contexts)).ravel(),
            offset=np.arange(matches * slots * contexts),
            entry=np.tile(entry, matches),
        )
    )


def _sentences(by: Rules, teams: int, a: StakeAssumptions) -> list[str]:
    """Describe the assumptions and the meaning of the outcomes."""
    play = "Times are not recorded" if a.seconds is None else f"All players play the whole match, {a.seconds:g} seconds"
    performance = "not recorded" if a.performance is None else f"{a.performance:g}"
    if teams == 2:
        last, order = "loses", []
        score = f"The winning team and each of its players score {a.win_score:g}, the losing ones {a.loss_score:g}"
    else:
        last = "comes last"
        order = ["A win is first place and a loss is last; the others finish in the order of their expected scores."]
        score = f"The first team and each of its players score {a.win_score:g}, the last ones {a.loss_score:g}"
        score += ", and those in between in equal steps"
    if quitters_differ(by):
        rule = "has a rule for players who quit"
    else:
        rule = "has no rule for players who quit: quitting counts as the team's result, a loss"
    return [
        f"{play}.",
        f"{score}; in a draw all score {a.win_score:g}.",
        *order,
        f"A player who quits leaves after {a.quit_after:.0%} of the match, with that part of the score; "
        f"the others stay, and the team {last}. {by.system.name} {rule}.",
        f"Players' performances are {performance}.",
    ]


def quitters_differ(by: Rules) -> bool:
    """Whether the system rates a newcomer who quits differently from one who stays, all else being equal."""
    count = by.system.teams or 2
    cases = Cases(np.tile(np.arange(1, count + 1, dtype=np.int32), (2, 1)), np.array([-1, 0], np.int32))
    history = _history([1] * count, 0, StakeAssumptions(quit_after=1.0), cases)
    if next(iter(by.system.refusals(history.columns, by.parameters)), None) is not None:
        return False
    journal = loop.replay(by, history, by.newcomers(2 * count), np.tile(by.ladders(), 2), journal=True).journal
    assert journal is not None
    return bool(journal.after[0] != journal.after[count])
