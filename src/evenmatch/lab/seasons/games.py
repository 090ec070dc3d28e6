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
from evenmatch.history import Columns, Flags, Floats, History

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
    target        score that ends a match; None: the loser's score is Poisson distributed with mean `level`
    score_mean, score_slope, score_noise  a player's score: mean · exp(slope · skill + noise), for a whole match
    duration, duration_spread  seconds of a whole match: its median, and the standard deviation of its logarithm
    quit          share of appearances that end early
    quit_behind   share of these whose team is behind at that moment
    fitted_to     the recorded set
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
    level: float = 2.0
    score_mean: float = 20.0
    score_slope: float = 0.3
    score_noise: float = 0.3
    duration: float
    duration_spread: float = 0.2
    quit: float
    quit_behind: float = 0.7
    fitted_to: str

    @property
    def players(self) -> int:
        """Players in a match."""
        return self.teams * self.team_size


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
        place, team_score = self._result(rng, score)
        length = np.exp(rng.normal(np.log(game.duration), game.duration_spread, self.matches))
        duration = np.maximum(np.rint(length * self.over), 2.0)
        part = np.minimum(self.left, self.over[self.match]) - self.joined
        seconds = np.maximum(np.rint(part[self.order] * np.rint(length)[match]), 1.0)
        sizes = np.bincount(team, minlength=len(place))
        return Columns(
            time=np.full(self.matches, time),
            team_start=np.arange(self.matches + 1) * game.teams,
            place=place,
            team_score=team_score,
            slot_start=np.concatenate(([0], np.cumsum(sizes))),
            player=players[account],
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

    def _result(self, rng: np.random.Generator, score: Floats) -> tuple[Whole, Floats]:
        """Places and scores of the teams. A team that left altogether loses."""
        game = self.game
        if game.teams > 2:
            total = np.bincount(self.team, score, len(self.performance)).reshape(-1, game.teams)
            place = 1 + (total[:, None, :] > total[:, :, None]).sum(2)
            return place.ravel().astype(np.int64), total.ravel()
        there = (np.bincount(self.team, self.here, len(self.performance)) > 0).reshape(-1, 2)
        lead = self._team_leads()[::2]
        left_alone = there[:, 0] != there[:, 1]
        lead = np.where(left_alone, np.where(there[:, 0], 1.0, -1.0) * np.maximum(np.abs(lead), 1.0), lead)
        drawn = np.abs(lead) < game.draw_width
        winner = np.arange(self.matches) * 2 + (lead < 0)
        beyond = np.maximum(np.abs(lead) - game.draw_width, 0.0)
        margin = np.rint(game.margin_scale * beyond**game.margin_power * self.margin_factor[winner])
        margin = np.where(drawn, 0.0, np.maximum(margin, 1.0))
        if game.target is None:
            other = rng.poisson(game.level, self.matches).astype(np.float64)
            best = other + margin
        else:
            best = np.where(drawn, game.target - 1.0, float(game.target))
            other = best - np.minimum(margin, best)
        first = lead >= 0
        place = np.where(drawn[:, None], 1, np.where(np.stack((first, ~first), 1), 1, 2))
        scores = np.stack((np.where(first, best, other), np.where(first, other, best)), 1)
        return place.ravel().astype(np.int64), scores.ravel()


def played(columns: Columns) -> History:
    """The history of simulated matches."""
    return History(columns)


# Fitted to ../shared/data by fitting.fit; see docs/fairness.md for the fits beside the recorded distributions.
GAMES = {
    game.name: game
    for game in (
        Game(
            name="duel",
            title="Duels",
            team_size=1,
            steepness=1.0,
            draw_width=0.05,
            margin_scale=6.0,
            duration=600.0,
            quit=0.01,
            fitted_to="halo2_h2h",
        ),
        Game(
            name="team",
            title="Teams of four",
            team_size=4,
            steepness=1.6,
            draw_width=0.03,
            margin_scale=60.0,
            duration=600.0,
            quit=0.015,
            fitted_to="cod_cwl",
        ),
        Game(
            name="brawl",
            title="Free-for-alls of eight",
            teams=8,
            team_size=1,
            steepness=1.0,
            draw_width=0.0,
            margin_scale=1.0,
            duration=600.0,
            quit=0.02,
            fitted_to="codeforces",
        ),
    )
}

# Larger shapes of the fitted games, for Microsoft's table. Luck averages out in larger teams, so the gap between teams
# whose mean skills differ by 1 grows with the root of their size.
_TEAM, _BRAWL = GAMES["team"], GAMES["brawl"]
GAMES["squad"] = replace(
    _TEAM, name="squad", title="Teams of eight", team_size=8, steepness=_TEAM.steepness * (8 / _TEAM.team_size) ** 0.5
)
GAMES["arena"] = replace(_BRAWL, name="arena", title="Free-for-alls of sixteen", teams=16)


def find_game(name: str) -> Game:
    """The game with this name. Raises UnknownNameError."""
    if name not in GAMES:
        raise UnknownNameError("game", name, GAMES)
    return GAMES[name]
