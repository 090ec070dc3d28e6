"""evenmatch odds: the predicted odds of a line-up, and what its players have at stake."""

from __future__ import annotations

import csv
import re
from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from evenmatch.cli.shared import options
from evenmatch.cli.shared.options import option
from evenmatch.cli.shared.output import compile_ahead, note, note_skipped, print_json, print_table, printable, working
from evenmatch.cli.shared.reading import NO_READING, Reading, reads_matches
from evenmatch.errors import UsageError
from evenmatch.times import as_datetime

if TYPE_CHECKING:
    from evenmatch.online import MatchOdds
    from evenmatch.stakes import Stakes


@reads_matches
def command(
    matches: options.Matches,
    system: options.System,
    teams: Annotated[str, option('--teams, -t "A,B vs C,D"', 'Players separated by commas, teams by " vs ".')],
    preset: options.Preset = None,
    param: options.Param = None,
    ladder: options.Ladder = None,
    pool_ladders: options.PoolLadders = False,
    context: Annotated[
        list[str] | None, option("--context K=V", "What they play on, such as map=dust; up to four.")
    ] = None,
    entry: Annotated[
        list[str] | None, option("--entry PLAYER=N", "A number known about a newcomer, as in the column entry.")
    ] = None,
    as_of: options.AsOf = None,
    show_stakes: Annotated[bool, option("--stakes", "Also show what each player has at stake.")] = False,
    assume: Annotated[list[str] | None, option("--assume K=V", "With --stakes: assume this; repeatable.")] = None,
    skip_bad: options.SkipBad = False,
    reading: Reading = NO_READING,
    json: options.Json = False,
) -> None:
    """Predict win and draw odds of a line-up after the recorded matches. Unknown players count as newcomers.

    With --stakes, show what every player would gain or lose. --assume sets seconds, win_score, loss_score, quit_after
    or performance of the match. Put a name that contains a comma in double quotes, as in CSV.

    Example:
    evenmatch odds season.csv --system wager --teams "ann,bob,eve vs joe,kim,max"
    """
    by = options.rules_of(system, preset, param)
    line_up = parse_teams(teams)
    if by.system.teams not in (None, len(line_up)):
        raise UsageError(f"--teams {teams}: {len(line_up)} teams; {by.system.name} rates matches of {by.system.teams}")
    if assume and not show_stakes:
        raise UsageError(f"--assume {assume[0]}: expected --stakes with it, since odds assume nothing")
    from evenmatch.stake_assumptions import StakeAssumptions

    assumptions = StakeAssumptions.read(options.values_of(assume, "--assume", "seconds=900"))
    now, known = options.moment(as_of), options.values_of(context, "--context", "map=dust")
    numbers = _numbers(entry)
    columns = ",".join(name for name in known if name != "ladder")
    from evenmatch.online import Rater
    from evenmatch.rating import rate, rateable

    read = options.matches_of(matches, ladder, pool_ladders, skip_bad, reading.in_context(columns), now)
    recorded = rateable(read, by, skip_bad=skip_bad)
    note_skipped(recorded.skipped, recorded.skipped_matches)
    options.check_one_ladder(recorded)
    compile_ahead([system], by.system.name)
    with working(f"rating with {by.system.name}", len(recorded)) as progress:
        ratings = rate(recorded, by, progress=progress)
    rater = Rater.after(ratings, recorded.ladders[0])
    at = None if now is None else as_datetime(now)
    odds = rater.odds(line_up, at, known, numbers)
    stakes = rater.stakes(line_up, assumptions, at=at, context=known, entry=numbers) if show_stakes else None
    players = [player for team in line_up for player in team]
    newcomers = [player for player in players if player not in rater]
    rating = {player: rater.rating(player) for player in players}
    if json:
        document = {
            "system": by.system.name,
            "preset": by.preset,
            "parameters": by.values(),
            "teams": [
                {
                    "players": [
                        {"player": player, "rating": rating[player], "newcomer": player in newcomers} for player in team
                    ],
                    "expected": odds.expected[number],
                    "win": list(odds.win[number]),
                    "draw": list(odds.draw[number]),
                }
                for number, team in enumerate(line_up)
            ],
        }
        print_json(document if stakes is None else document | _stakes_document(stakes))
        return
    for player in newcomers:
        note(f"{printable(player)} has not played in these matches and counts as a newcomer ({rating[player]:.2f})")
    _print_odds(by.system.name, line_up, rating, odds)
    if stakes is not None:
        _print_stakes(by.system.name, stakes)


def _numbers(given: list[str] | None) -> dict[str, float]:
    """The numbers known about newcomers, by player."""
    numbers = {}
    for player, text in options.values_of(given, "--entry", "ann=1834").items():
        try:
            numbers[player] = float(text)
        except ValueError:
            raise UsageError(f"--entry {player}={text}: expected a number, for example {player}=1834") from None
    return numbers


def _print_odds(system: str, line_up: list[list[str]], rating: dict[str, float], odds: MatchOdds) -> None:
    if len(line_up) == 2:
        heads = ["team", "win", "draw", "loss"]
        rows: list[list[object]] = [
            [
                _named(team, rating),
                f"{odds.win[a][1 - a]:.1%}",
                f"{odds.draw[a][1 - a]:.1%}",
                f"{odds.win[1 - a][a]:.1%}",
            ]
            for a, team in enumerate(line_up)
        ]
    else:
        heads = ["team", "expected", *(f"ahead of team {number + 1}" for number in range(len(line_up)))]
        rows = [
            [
                _named(team, rating),
                f"{odds.expected[a]:.1%}",
                *("–" if a == b else f"{odds.win[a][b]:.1%}" for b in range(len(line_up))),
            ]
            for a, team in enumerate(line_up)
        ]
    print_table(f"Odds by {system}", heads, rows, right=heads[1:])


def _print_stakes(system: str, stakes: Stakes) -> None:
    from evenmatch.players.explanations import ShownRatingChange

    heads = ["player", "team", "rating", *stakes.players[0].after._fields]
    rows: list[list[object]] = [
        [
            entry.player,
            entry.team + 1,
            entry.before,
            *(f"{ShownRatingChange.of(entry.before, after).change:+.2f}" for after in entry.after),
        ]
        for entry in stakes.players
    ]
    print_table(f"Stakes by {system}", heads, rows, right=heads[1:])
    print("\n".join(stakes.sentences))


def _stakes_document(stakes: Stakes) -> dict[str, object]:
    """The stakes as JSON data, with full precision."""
    listed = [
        {
            "player": entry.player,
            "team": entry.team,
            "before": entry.before,
            "after": entry.after._asdict(),
            "change": entry.change._asdict(),
        }
        for entry in stakes.players
    ]
    return {"stakes": listed, "assumptions": asdict(stakes.assumptions), "assumed": list(stakes.sentences)}


def parse_teams(text: str) -> list[list[str]]:
    """ "a,b vs c,d" as [["a", "b"], ["c", "d"]]. Raises UsageError if it is not a line-up of two or more teams."""
    sides = re.split(r"\s+vs\s+", text.strip())
    expected = 'expected "a,b vs c,d": players separated by commas, two or more teams by " vs "'
    try:
        teams = [[name.strip() for name in next(csv.reader([side], skipinitialspace=True), [])] for side in sides]
    except csv.Error as error:
        raise UsageError(f"--teams {text}: {expected}") from error
    if len(teams) < 2 or not all(team and all(team) for team in teams):
        raise UsageError(f"--teams {text}: {expected}")
    names = [name for team in teams for name in team]
    duplicate = next((name for name, count in Counter(names).items() if count > 1), None)
    if duplicate is not None:
        raise UsageError(f"--teams {text}: {duplicate!r} is listed more than once")
    return teams


def _named(team: list[str], rating: dict[str, float]) -> str:
    return ", ".join(f"{printable(player)} ({rating[player]:.2f})" for player in team)
