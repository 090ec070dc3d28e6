"""Section 2, `scorefactor`, one pair of players after the other."""

import math
from dataclasses import dataclass

from .elo import rivals_of
from .model import SlowChange, SlowMatch, SlowPlayer, SlowTeam

DAY = 86400.0


@dataclass
class Standing:
    """What is kept of a player: `last_played` is the time of the last match in which they were compared."""

    rating: float
    games: int = 0
    last_played: float | None = None


def replay(
    matches: list[SlowMatch],
    *,
    start: float = 100.0,
    floor: float = 100.0,
    k: float = 200.0,
    full_time: float = 600.0,
    min_time: float = 120.0,
    min_share: float = 0.5,
    spare_favourites: bool = False,
    summed: bool = False,
    inactivity_rot: bool = False,
    advantage: float = 0.0,
    state: dict[str, dict] | None = None,
) -> list[SlowChange]:
    """One change per match and player. `state`: {player: {"rating": 450, "games": 40, "last_played": 0.0}}.

    Fields of `state` that are left out are a newcomer's.
    """
    kept = {name: Standing(**{"rating": float(start), **fields}) for name, fields in (state or {}).items()}
    changes = []
    for match in matches:
        players = [player for team in match.teams for player in team.players]
        for player in players:
            kept.setdefault(player.name, Standing(float(start)))

        rating = {}
        for player in players:
            standing = kept[player.name]
            rating[player.name] = standing.rating
            if inactivity_rot and standing.last_played is not None:
                lost = rot(match.time - standing.last_played)
                rating[player.name] = max(floor, standing.rating - lost)

        time = times_played(match)
        weight = {}
        for player in players:
            weight[player.name] = games_factor(kept[player.name].games) * time_factor(
                time, player, full_time, min_time, min_share
            )
        compared = [player for player in players if weight[player.name] > 0]

        after = {}
        if len(compared) >= 2:
            for player in compared:
                total = 0.0
                for rival in compared:
                    if rival is not player:
                        lead = side(match, player, rival) * advantage
                        e = expected_share(rating[player.name] + lead, rating[rival.name])
                        s = actual_share(match, time, player, rival)
                        total += gained(s, e, spare_favourites)
                gain = k * weight[player.name] * total / (1 if summed else len(compared) - 1)
                after[player.name] = max(floor, rating[player.name] + gain)

        for index, team in enumerate(match.teams):
            expected = team_expected(match, index, rating, advantage)
            for player in team.players:
                # The shown rating before is the stored one, without rot: what the player's last match left.
                # It is also the shown rating after where the player was not compared.
                before = kept[player.name].rating
                changes.append(
                    SlowChange(match.id, player.name, index, before, after.get(player.name, before), expected)
                )

        for name, new_rating in after.items():
            kept[name].rating = new_rating
            kept[name].games += 1
            kept[name].last_played = match.time
    return changes


def rot(idle_seconds: float) -> float:
    """Points lost in all: on each whole day after the thirtieth, one more each week."""
    idle_days = math.floor(idle_seconds / DAY)
    return float(sum((day - 31) // 7 + 1 for day in range(31, idle_days + 1)))


def games_factor(games: int) -> float:
    return 1 - 0.8 * games / 32 if games < 32 else 0.2


@dataclass
class Times:
    """Step 1. `played` is None where the match has no seconds at all."""

    duration: float | None
    played: dict[str, float] | None


def times_played(match: SlowMatch) -> Times:
    seconds = {player.name: player.seconds for team in match.teams for player in team.players}
    if all(value is None for value in seconds.values()):
        return Times(match.duration, None)
    # Seconds for some players only are an input error.
    duration = max(seconds.values()) if match.duration is None else match.duration
    return Times(duration, {name: min(value, duration) for name, value in seconds.items()})


def time_factor(time: Times, player: SlowPlayer, full_time: float, min_time: float, min_share: float) -> float:
    """Step 2 without the factor for games."""
    if time.played is None:
        # "Everybody played all of it with the full time factor": so also where a recorded duration is under min_time.
        return 1.0
    t = time.played[player.name]
    if t < min_time or t < min_share * time.duration:
        return 0.0
    return min(1.0, t / full_time)


def actual_share(match: SlowMatch, time: Times, player: SlowPlayer, rival: SlowPlayer) -> float:
    """Steps 3 and 4: the player's share against the rival."""
    if is_duel(match):
        own_place, rival_place = place_of(match, player), place_of(match, rival)
        if own_place == rival_place:
            return 0.5
        return 1.0 if own_place < rival_place else 0.0
    if time.played is None:
        # Everybody played equally long, so the rates are to each other as the scores.
        own_rate, rival_rate = player.score, rival.score
    else:
        own_rate = player.score / time.played[player.name]
        rival_rate = rival.score / time.played[rival.name]
    offset = min(0.0, own_rate, rival_rate)
    a, b = own_rate - offset, rival_rate - offset
    return 0.5 if a + b == 0 else a / (a + b)


def is_duel(match: SlowMatch) -> bool:
    """Two players, one each side, by who took part; not a larger match in which two are left to compare."""
    return len(match.teams) == 2 and all(len(team.players) == 1 for team in match.teams)


def place_of(match: SlowMatch, player: SlowPlayer) -> int:
    return next(team.place for team in match.teams if player in team.players)


def side(match: SlowMatch, player: SlowPlayer, rival: SlowPlayer) -> int:
    """1 for a player of the first-listed team against others, -1 for others against them, 0 otherwise."""
    return (player in match.teams[0].players) - (rival in match.teams[0].players)


def expected_share(own: float, rival: float) -> float:
    d = max(-400.0, min(400.0, own - rival))
    return 1 / (1 + 10 ** (-d / 400))


def gained(s: float, e: float, spare_favourites: bool) -> float:
    """Share won above the expected one; the favourite's side of the pair as XonStat's code has it, if asked."""
    if spare_favourites and e > 0.5:
        return max(0.0, s - e) if s > 0.5 else (2 * s - 1) * e
    return s - e


def team_expected(match: SlowMatch, index: int, rating: dict[str, float], advantage: float) -> float:
    """Mean over rival teams of the mean over all pairs of players, those who are later left out included."""
    own, rivals = match.teams[index], rivals_of(match, index, advantage)
    return sum(pair_expected(own, match.teams[other], rating, lead) for other, lead in rivals) / len(rivals)


def pair_expected(own: SlowTeam, rival: SlowTeam, rating: dict[str, float], lead: float) -> float:
    shares = [expected_share(rating[a.name] + lead, rating[b.name]) for a in own.players for b in rival.players]
    return sum(shares) / len(shares)
