"""Games of simulated seasons: how skill becomes results, scores, durations and quits.

The result of a match is a race. Each team collects performance in equal stages of the match; the gap between two teams
at the end is normal with standard deviation 1, so that skill is measured in probits: a team that is ahead by 1 wins
84 % of its matches. The numbers of each game were fitted to recorded matches by `evenmatch.lab.seasons.fitting`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evenmatch.errors import UnknownNameError
from evenmatch.history import Columns, Flags, Floats, Integers

Whole = NDArray[np.int64]
STAGES = 8  # of a match: after each of them players may leave
NOISE = (0.5 / STAGES) ** 0.5  # standard deviation of a team's performance in one stage


@dataclass(frozen=True, kw_only=True)
class Game:
    """How a game turns skill into results. Skill is standard normal; a gap is in probits.

    steepness     gap between two teams whose mean skills differ by 1
    home          gap in favour of the first-listed team
    absence       gap lost by a team of which nobody is there, beyond the skill of those who left
    draw_width    a match of two teams is drawn if the gap at the end is smaller than this
    margin_scale, margin_power  margin of the team scores: scale · gap^power, at least 1
    target        score that ends a match; None: no score does
    timed         whether time also ends a match that has a target
    level         mean of the loser's score, Poisson distributed, if time ends the match; also of both scores of a draw
    score_mean, score_slope, score_noise  a player's score: mean · exp(slope · skill + noise), for a whole match;
                  in teams of one it is the team's score; the points of a free-for-all: mean · exp(noise · performance)
    duration, duration_spread  seconds of a whole match: its median, and the standard deviation of its logarithm
    quit          share of appearances that end early, in matches of equals
    quit_behind   share of these whose team is behind at that moment
    quit_time     the share of the match played before a quit is a uniform number to this power
    fitted_to     the recorded set; empty: the numbers are invented
    """

    name: str
    title: str
    teams: int = 2
    team_size: int
    steepness: float
    home: float = 0.0
    absence: float = 3.5
    draw_width: float
    margin_scale: float
    margin_power: float = 1.0
    target: int | None = None
    timed: bool = False
    level: float = 2.0
    score_mean: float = 20.0
    score_slope: float = 0.3
    score_noise: float = 0.3
    duration: float
    duration_spread: float = 0.2
    quit: float
    quit_behind: float = 0.7
    quit_time: float = 1.0
    fitted_to: str = ""

    @property
    def players(self) -> int:
        """Players in a match."""
        return self.teams * self.team_size

    def resized(self, team_size: int) -> Game:
        """The game with larger or smaller teams: luck averages out in large teams, so skill decides more."""
        return replace(self, team_size=team_size, steepness=self.steepness * (team_size / self.team_size) ** 0.5)

    def quit_rates(self) -> tuple[float, float]:
        """Share of appearances that end early if the team is behind at that moment, and if it is not."""
        behind = (self.teams - 1) / self.teams  # among equals
        return self.quit * self.quit_behind / behind, self.quit * (1.0 - self.quit_behind) / (1.0 - behind)


@dataclass(eq=False)
class Play:
    """The matches of one round while they are played, as columns of M matches, T teams and S slots.

    Slots are in order of match and team. Behaviours change `skill`, `score_factor` and `margin_factor`, and call
    `leave` and `switch`.

    account        int64 (S,)    who plays
    match, team    int64 (S,)    index of the match, and of the team over all matches
    skill          float64 (S,)  skill that the player shows in this match
    chance         float64 (S,)  the team's chance to win by the known ratings
    whim           float64 (S,)  a uniform number from 0 to 1, drawn once for each player and match
    done           share of the match that has been played, 0..1
    performance    float64 (T,)  collected so far
    here           bool (S,)     has not left
    left           float64 (S,)  share of the match after which the player left; 1: stayed
    joined         float64 (S,)  share of the match after which the player joined the present team
    over           float64 (M,)  share of the match after which a match of two teams ended because one team had left
    score_factor   float64 (S,)  multiplies the player's own score
    margin_factor  float64 (T,)  multiplies the margin if this team wins
    """

    game: Game
    account: Whole
    match: Whole
    team: Whole
    skill: Floats
    chance: Floats
    whim: Floats
    noise: Floats

    def __post_init__(self) -> None:
        slots, self.matches = len(self.account), int(self.match[-1]) + 1 if len(self.match) else 0
        self.done = 0.0
        self.performance = np.zeros(self.matches * self.game.teams)
        self.first = self.team
        self.here: Flags = np.ones(slots, np.bool_)
        self.left: Floats = np.ones(slots)
        self.joined: Floats = np.zeros(slots)
        self.over: Floats = np.ones(self.matches)
        self.score_factor: Floats = np.ones(slots)
        self.margin_factor: Floats = np.ones(len(self.performance))

    @property
    def lead(self) -> Floats:
        """How far each slot's team is ahead of its best rival, float64 (S,); negative: behind."""
        return self._team_leads()[self.team]

    def _team_leads(self) -> Floats:
        table = self.performance.reshape(-1, self.game.teams)
        if self.game.teams == 2:
            gap = table[:, 0] - table[:, 1]
            return np.stack((gap, -gap), 1).ravel()
        order = np.sort(table, 1)
        best = np.where(table == order[:, -1:], order[:, -2:-1], order[:, -1:])
        return (table - best).ravel()

    def leave(self, who: Flags) -> None:
        """Let these slots leave the match now; those who left already are ignored."""
        gone = who & self.here & (self.over[self.match] == 1.0)
        self.left[gone] = self.done
        self.here &= ~gone

    def switch(self, who: Flags) -> None:
        """Let these slots change to the leading team of their match now; nobody changes who is the last of a team."""
        if self.game.teams == 2:
            moved = who & self.here & (self.lead < 0)
            staying = np.bincount(self.team, ~moved & self.here, len(self.performance))
            moved &= staying[self.team] > 0
            self.team = np.where(moved, self.team ^ 1, self.team)
            self.joined[moved] = self.done

    def put_back(self) -> None:
        """Count players who switched in the second half of the match in their first team, with all their time."""
        late = self.joined > 0.5
        self.team, self.joined = np.where(late, self.first, self.team), np.where(late, 0.0, self.joined)

    def advance(self, stage: int) -> None:
        """Play one of the stages, numbered from 0."""
        game, count = self.game, len(self.performance)
        there = self.here.astype(np.float64)
        skill = np.bincount(self.team, self.skill * there, count) / game.team_size
        present = np.bincount(self.team, there, count) / game.team_size
        noise = np.bincount(self.team, self.noise[:, stage] * there, count) / game.team_size**0.5
        drift = game.steepness * skill - game.absence * (1.0 - present)
        drift[:: game.teams] += game.home
        ongoing = np.repeat(self.over == 1.0, game.teams)
        self.performance += ongoing * (drift / STAGES + NOISE * noise)
        self.done = (stage + 1) / STAGES
        if game.teams == 2:
            empty = (np.bincount(self.team, self.here, count) == 0).reshape(-1, 2)
            self.over[empty.any(1) & (self.over == 1.0)] = self.done

    def columns(self, time: int, rng: np.random.Generator, players: Whole) -> Columns:
        """The finished matches as a game server reports them; `players` numbers the accounts.

        Slots are put in order of the teams at the end of the match; `order` of the object says how.
        """
        game = self.game
        self.order = np.argsort(self.team, kind="stable")
        account, match, team = self.account[self.order], self.match[self.order], self.team[self.order]
        score, performance = self._scores(rng)
        place, team_score = self._contest() if game.teams > 2 else self._result(rng)
        if game.team_size == 1:
            score = np.rint(team_score[self.team] * self.score_factor)
        length = np.exp(rng.normal(np.log(game.duration), game.duration_spread, self.matches))
        duration = np.maximum(np.rint(length * self.over), 2.0)
        part = np.minimum(self.left, self.over[self.match]) - self.joined
        seconds = np.maximum(np.rint(part[self.order] * np.rint(length)[match]), 1.0)
        sizes = np.bincount(team, minlength=len(place))
        return Columns(
            time=np.full(self.matches, time),
            team_start=np.arange(self.matches + 1, dtype=np.int32) * np.int32(game.teams),
            place=place,
            team_score=team_score,
            slot_start=np.concatenate(([0], np.cumsum(sizes))).astype(np.int32),
            player=players[account].astype(np.int32),
            score=score[self.order],
            seconds=np.minimum(seconds, duration[match]),
            performance=performance[self.order],
            quit=~self.here[self.order],
            duration=duration,
            keep=np.ones(len(account), np.bool_),
        )

    def _scores(self, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Each slot's score, and its performance from -1 to 1 among the players of the match."""
        game = self.game
        luck = self.noise.sum(1) / STAGES**0.5  # of the match itself: those who had a good day score more
        log = game.score_slope * self.skill + game.score_noise * (0.6 * luck + 0.8 * rng.standard_normal(len(luck)))
        log += np.log(self.score_factor)
        presence = np.minimum(self.left, self.over[self.match]) - self.joined
        score = np.rint(game.score_mean * np.exp(log) * presence)
        mean = np.bincount(self.match, log, self.matches) / np.bincount(self.match, minlength=self.matches)
        performance = np.round(np.tanh((log - mean[self.match]) / (2.0 * game.score_noise + 1e-9)), 3)
        return score, performance

    def _contest(self) -> tuple[Integers, Floats]:
        """Places and points of more than two teams; equal points share a place."""
        game = self.game
        points = np.rint(game.score_mean * np.exp(game.score_noise * self.performance)).reshape(-1, game.teams)
        place = 1 + (points[:, None, :] > points[:, :, None]).sum(2)
        return place.ravel().astype(np.int32), points.ravel()

    def _result(self, rng: np.random.Generator) -> tuple[Integers, Floats]:
        """Places and scores of two teams. A team that left altogether loses."""
        game = self.game
        there = (np.bincount(self.team, self.here, len(self.performance)) > 0).reshape(-1, 2)
        lead = self._team_leads()[::2]
        left_alone = there[:, 0] != there[:, 1]
        least = np.maximum(np.abs(lead), max(1.0, game.draw_width))
        lead = np.where(left_alone, np.where(there[:, 0], least, -least), lead)
        drawn = np.abs(lead) < game.draw_width
        winner = np.arange(self.matches) * 2 + (lead < 0)
        beyond = np.maximum(np.abs(lead) - game.draw_width, 0.0)
        margin = np.rint(game.margin_scale * beyond**game.margin_power * self.margin_factor[winner])
        margin = np.where(drawn, 0.0, np.maximum(margin, 1.0))
        other = rng.poisson(game.level, self.matches).astype(np.float64)
        best = other + margin
        if game.target is not None:
            best = np.where(drawn | game.timed, np.minimum(best, game.target - drawn), float(game.target))
            other = np.maximum(best - margin, 0.0)
        first = lead >= 0
        place = np.where(drawn[:, None], 1, np.where(np.stack((first, ~first), 1), 1, 2))
        scores = np.stack((np.where(first, best, other), np.where(first, other, best)), 1)
        return place.ravel().astype(np.int32), scores.ravel()


# Reproduced by `evenmatch audit fits --data FOLDER`. The quits of a duel and of a brawl, and the absence of games
# without uneven teams, are assumptions: no recorded set tells them.
GAMES = {
    game.name: game
    for game in (
        Game(
            name="duel",
            title="Duels",
            team_size=1,
            steepness=0.924,
            draw_width=0.1,
            margin_scale=4.13,
            margin_power=0.8,
            target=7,
            timed=True,
            level=3.35,
            duration=600.0,
            quit=0.01,
            fitted_to="halo2_h2h",
        ),
        Game(
            name="football",
            title="Football between countries",
            team_size=1,
            steepness=1.15,
            home=0.393,
            draw_width=0.395,
            margin_scale=2.15,
            margin_power=0.95,
            level=0.605,
            duration=5400.0,
            quit=0.0,
            fitted_to="intl_football",
        ),
        Game(
            name="team",
            title="Teams of four",
            team_size=4,
            steepness=1.19,
            absence=2.33,
            draw_width=0.00067,
            margin_scale=82.2,
            margin_power=0.9,
            target=250,
            level=176.0,
            score_mean=22.8,
            score_slope=0.0657,
            score_noise=0.238,
            duration=616.0,
            duration_spread=0.146,
            quit=0.0321,
            fitted_to="cod_cwl",
        ),
        Game(
            name="sixes",
            title="Teams of six",
            team_size=6,
            steepness=1.33,
            absence=4.17,
            draw_width=0.294,
            margin_scale=1.81,
            margin_power=0.55,
            target=3,
            timed=True,
            level=0.766,
            score_mean=6.97,
            score_slope=0.429,
            score_noise=0.527,
            duration=600.0,
            quit=0.0313,
            fitted_to="halo2_smallteam",
        ),
        Game(
            name="brawl",
            title="Free-for-alls of eight",
            teams=8,
            team_size=1,
            steepness=1.0,
            draw_width=0.0,
            margin_scale=1.0,
            score_mean=32.9,
            duration=600.0,
            quit=0.02,
            fitted_to="codeforces",
        ),
        Game(
            name="race",
            title="Races of twenty",
            teams=20,
            team_size=1,
            steepness=0.952,
            draw_width=0.0,
            margin_scale=1.0,
            score_mean=1750.0,
            duration=5940.0,
            duration_spread=0.167,
            quit=0.359,
            quit_behind=1.0,
            quit_time=1.55,
            fitted_to="f1",
        ),
    )
}

# Larger shapes of the fitted games, for Microsoft's table.
GAMES["squad"] = replace(GAMES["team"].resized(8), name="squad", title="Teams of eight")
GAMES["arena"] = replace(GAMES["brawl"], name="arena", title="Free-for-alls of sixteen", teams=16)


def find_game(name: str) -> Game:
    """The game with this name. Raises UnknownNameError."""
    if name not in GAMES:
        raise UnknownNameError("game", name, GAMES)
    return GAMES[name]
