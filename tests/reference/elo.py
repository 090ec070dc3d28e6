"""Section 5, `elo`: by the mean of each team; with K fixed, as FIDE or as the US federation has it."""

import math
from dataclasses import dataclass
from fractions import Fraction

from .model import SlowChange, SlowMatch, SlowTeam

TOP = 2400.0  # where FIDE's K falls to 10 for good


@dataclass
class Standing:
    """What is kept of a player: `score` is the sum of the results S, `top` whether FIDE's top was ever reached."""

    rating: float
    games: int = 0
    score: float = 0.0
    top: bool = False


def replay(
    matches: list[SlowMatch],
    *,
    start: float = 1500.0,
    k: float = 32.0,
    scale: float = 400.0,
    rule: str = "fixed",
    clamp: float | None = None,
    advantage: float = 0.0,
    state: dict[str, dict] | None = None,
) -> list[SlowChange]:
    """One change per match and player. `state`: {player: {"rating": 1800, "games": 4, "score": 2.5, "top": False}}.

    Fields of `state` that are left out are a newcomer's.
    """
    kept = {name: Standing(**{"rating": float(start), **fields}) for name, fields in (state or {}).items()}
    changes = []
    for match in matches:
        for team in match.teams:
            for player in team.players:
                kept.setdefault(player.name, Standing(float(start)))

        after = {}
        for index, team in enumerate(match.teams):
            expected = mean(
                [
                    win_chance(mean_rating(team, kept) - mean_rating(match.teams[other], kept) + lead, scale, clamp)
                    for other, lead in rivals_of(match, index, advantage)
                ]
            )
            s = mean([result(team, match.teams[other]) for other, _ in rivals_of(match, index, advantage)])
            for player in team.players:
                old = kept[player.name]
                if rule == "uscf" and old.games <= 8:
                    new_rating = special(old, match, index, kept, advantage)
                else:
                    new_rating = old.rating + factor(rule, k, old) * (s - expected)
                top = old.top or old.rating >= TOP or new_rating >= TOP
                after[player.name] = Standing(new_rating, old.games + 1, old.score + s, top)
                changes.append(SlowChange(match.id, player.name, index, old.rating, new_rating, expected))
        kept.update(after)
    return changes


def factor(rule: str, k: float, player: Standing) -> float:
    if rule == "fixed":
        return k
    if rule == "fide":
        if player.games < 30:
            return 40.0
        return 10.0 if player.top or player.rating >= TOP else 20.0
    return 800 / (effective_games(player) + 1)


def effective_games(player: Standing) -> float:
    """N' of the US federation: the games played, but no more than the rating makes meaningful."""
    most = 50.0
    if player.rating <= 2355:
        most = 50 / math.sqrt(0.662 + 0.00000739 * (2569 - player.rating) ** 2)
    return min(float(player.games), most)


def special(player: Standing, match: SlowMatch, index: int, kept: dict[str, Standing], advantage: float) -> float:
    """The rating at which the games so far and this one would have come out as they did, in exact arithmetic."""
    games = Fraction(effective_games(player))
    rating = Fraction(player.rating)
    rivals, scores = [], []
    for other, lead in rivals_of(match, index, advantage):
        rival = match.teams[other]
        ratings = [Fraction(kept[member.name].rating) for member in rival.players]
        rivals.append(sum(ratings) / len(ratings) - Fraction(lead))
        scores.append(Fraction(result(match.teams[index], rival)))
    s = sum(scores) / len(scores)

    if player.games >= 1 and player.score == player.games:
        own, aim = rating - 400, s + games
    elif player.games >= 1 and player.score == 0:
        own, aim = rating + 400, s
    else:
        own, aim = rating, s + games / 2

    def surplus(x: float) -> Fraction:
        here = Fraction(x)
        return games * chance(here, own) + sum(chance(here, rival) for rival in rivals) / len(rivals) - aim

    # All chances are 0 at the low end and 1 at the high end, and the surplus never falls between them.
    low, high = float(min(own, *rivals)) - 401, float(max(own, *rivals)) + 401
    below, first = (-math.inf,) * 2 if surplus(low) >= 0 else boundary(low, high, lambda x: surplus(x) >= 0)
    if surplus(high) <= 0:
        last = math.inf
    elif first > low and surplus(first) > 0:  # no stretch of zeros between
        last = below
    else:
        last = boundary(low, high, lambda x: surplus(x) > 0)[0]
    return min(max(float(own), first), last)


def chance(a: Fraction, b: Fraction) -> Fraction:
    """PWe, the straight line that the special formula has in the place of the curve."""
    return min(max(Fraction(1, 2) + (a - b) / 800, Fraction(0)), Fraction(1))


def boundary(low: float, high: float, holds) -> tuple[float, float]:
    """The neighbouring floats between which `holds`, false at `low` and true at `high`, becomes true."""
    while True:
        middle = (low + high) / 2
        if middle in (low, high):
            return low, high
        if holds(middle):
            high = middle
        else:
            low = middle


def win_chance(lead: float, scale: float, clamp: float | None) -> float:
    """1 / (1 + 10^(-lead/scale)), written so that no power overflows."""
    if clamp is not None:
        lead = max(-clamp, min(clamp, lead))
    if lead < 0:
        odds = 10.0 ** (lead / scale)
        return odds / (odds + 1)
    return 1 / (1 + 10.0 ** (-lead / scale))


def rivals_of(match: SlowMatch, index: int, advantage: float) -> list[tuple[int, float]]:
    """Each other team's place in the list, and the points that the listed order adds to this team's rating against it.

    Only the first-listed team has the advantage, against everybody.
    """
    rivals = []
    for other in range(len(match.teams)):
        if other != index:
            lead = advantage if index == 0 else -advantage if other == 0 else 0.0
            rivals.append((other, lead))
    return rivals


def mean_rating(team: SlowTeam, kept: dict[str, Standing]) -> float:
    return mean([kept[player.name].rating for player in team.players])


def result(team: SlowTeam, rival: SlowTeam) -> float:
    if team.place == rival.place:
        return 0.5
    return 1.0 if team.place < rival.place else 0.0


def mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)
