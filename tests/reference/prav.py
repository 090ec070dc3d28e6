"""Section 3, `prav`: the last games (ten by default) are judged again after each match."""

import math
from dataclasses import dataclass, field

from .elo import rivals_of
from .model import SlowChange, SlowMatch, SlowPlayer, SlowTeam


@dataclass
class Game:
    """One entry of the window: what happened and how strong everybody else was then."""

    outcome: float  # S
    mates: float  # RT1, sum of the team-mates' means
    rivals: float  # RT2, sum of the opponents' means
    others: float  # VT, sum of everybody else's variances


@dataclass
class Belief:
    """What is kept of a player: `volatility` is the variance V, `window` has the oldest game first."""

    mean: float
    volatility: float
    window: list[Game] = field(default_factory=list)


def replay(
    matches: list[SlowMatch],
    *,
    start_mean: float = 0.0,
    start_volatility: float = 1.0,
    c: float = 4.0,
    gain: float = 0.5,
    window: int = 10,
    share_gain: bool = True,
    outcome: str = "result",
    display: str = "mean",
    shift: float = 1500.0,
    scale: float = 200.0,
    advantage: float = 0.0,
    state: dict[str, dict] | None = None,
) -> list[SlowChange]:
    """One change per match and player. `state`: {player: {"mean": 1.0, "volatility": 0.9, "window": [...]}}.

    Each entry of "window" is (S, RT1, RT2, VT), the oldest first. Fields that are left out are a newcomer's.
    """
    beliefs = {}
    for name, fields in (state or {}).items():
        kept = [Game(*entry) for entry in fields.get("window", [])]
        beliefs[name] = Belief(fields.get("mean", start_mean), fields.get("volatility", start_volatility), kept)

    def shown(belief: Belief) -> float:
        if display == "conservative":
            return shift + scale * (belief.mean - 2 * math.sqrt(belief.volatility))
        return shift + scale * belief.mean

    changes = []
    for match in matches:
        for team in match.teams:
            for player in team.players:
                beliefs.setdefault(player.name, Belief(start_mean, start_volatility))

        after = {}
        for index, team in enumerate(match.teams):
            rivals = [rival for other, rival in enumerate(match.teams) if other != index]
            leads = [lead / scale for _, lead in rivals_of(match, index, advantage)]
            expected = mean(
                [win_probability(team, rival, beliefs, lead) for rival, lead in zip(rivals, leads, strict=True)]
            )
            for player in team.players:
                old = beliefs[player.name]
                mates = [mate for mate in team.players if mate is not player]
                # Several rivals count as one average team, in the outcome too.
                game = Game(
                    outcome=mean([adjust(score(team, rival, outcome), team, rival, player) for rival in rivals]),
                    mates=mean_sum(mates, beliefs),
                    rivals=mean([mean_sum(rival.players, beliefs) for rival in rivals]) - mean(leads),
                    others=variance_sum(mates, beliefs)
                    + mean([variance_sum(rival.players, beliefs) for rival in rivals]),
                )
                own_gain = gain / len(team.players) if share_gain else gain
                new = judge(old, game, own_gain, c, start_volatility, longest=window)
                after[player.name] = new
                changes.append(SlowChange(match.id, player.name, index, shown(old), shown(new), expected))
        beliefs.update(after)
    return changes


def judge(old: Belief, game: Game, gain: float, c: float, start_volatility: float, *, longest: int) -> Belief:
    """Mean and volatility after the game, which is itself part of the window; both from the old mean and volatility."""
    window = [*old.window, game][-longest:]
    n = len(window)

    surprises = []
    for past in window:
        y = phi((past.mates + old.mean - past.rivals) / math.sqrt(past.others + old.volatility))
        surprises.append(past.outcome - y)
    new_mean = old.mean + gain * math.sqrt(old.volatility) * mean(surprises)

    average = mean([past.outcome for past in window])
    variance = mean([(past.outcome - average) ** 2 for past in window])
    padded = (n * variance + (longest - n) * start_volatility / c) / longest
    return Belief(new_mean, max(0.05 * c, c * padded), window)


def score(team: SlowTeam, rival: SlowTeam, outcome: str) -> float:
    """S against one rival: the result, or the share of rounds where there is one and it agrees with the places."""
    result = 0.5
    if team.place != rival.place:
        result = 1.0 if team.place < rival.place else 0.0
    if outcome == "result" or team.score is None or rival.score is None or team.score + rival.score == 0:
        return result
    # Rounds won are not negative, so the share is one.
    share = team.score / (team.score + rival.score)
    agrees = (result == 1.0 and share > 0.5) or (result == 0.0 and share < 0.5) or (result == 0.5 and share == 0.5)
    return share if agrees else result


def adjust(s: float, team: SlowTeam, rival: SlowTeam, player: SlowPlayer) -> float:
    """S moved by the player's performance p: against each rival apart, because win and loss are."""
    p = player.performance
    if p is None or team.place == rival.place:
        return s
    worst, best = (0.5, 1.0) if team.place < rival.place else (0.0, 0.5)
    return s + p * (best - s) if p >= 0 else s - p * (worst - s)


def win_probability(team: SlowTeam, rival: SlowTeam, beliefs: dict[str, Belief], lead: float) -> float:
    ahead = mean_sum(team.players, beliefs) - mean_sum(rival.players, beliefs) + lead
    return phi(ahead / math.sqrt(variance_sum(team.players, beliefs) + variance_sum(rival.players, beliefs)))


def mean_sum(players: list[SlowPlayer], beliefs: dict[str, Belief]) -> float:
    return math.fsum(beliefs[player.name].mean for player in players)


def variance_sum(players: list[SlowPlayer], beliefs: dict[str, Belief]) -> float:
    return math.fsum(beliefs[player.name].volatility for player in players)


def mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)


def phi(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2))
