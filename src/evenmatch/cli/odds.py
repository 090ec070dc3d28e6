"""evenmatch odds: what is to be expected of a line-up after a recorded history."""

from __future__ import annotations

import csv
import re
from typing import Annotated

import typer

from evenmatch.cli import options
from evenmatch.cli.output import compile_ahead, note, note_skipped, print_json, print_table, printable, working
from evenmatch.errors import UsageError


def command(
    matches: options.Matches,
    system: options.System,
    teams: Annotated[
        str, typer.Option("--teams", "-t", metavar='"A,B vs C,D"', help='Players by comma, teams by " vs ".')
    ],
    preset: options.Preset = None,
    param: options.Param = None,
    ladder: options.Ladder = None,
    pool_ladders: options.PoolLadders = False,
    as_of: options.AsOf = None,
    skip_bad: options.SkipBad = False,
    json: options.Json = False,
) -> None:
    """Tell the win and draw odds of a line-up after the recorded matches. An unknown player is a newcomer.

    A name with a comma goes in double quotes, as in CSV.

    [bold]Example[/bold]

    evenmatch odds season.csv --system wager --teams "ann,bob,eve vs joe,kim,max"
    """
    by = options.rules_of(system, preset, param)
    line_up = parse_teams(teams)
    if by.system.teams not in (None, len(line_up)):
        raise UsageError(f"--teams {teams}: {len(line_up)} teams; {by.system.name} rates matches of {by.system.teams}")
    now = options.moment(as_of)
    from evenmatch.online import Rater
    from evenmatch.rating import rate, rateable

    recorded = rateable(options.matches_of(matches, ladder, pool_ladders, now, skip_bad), by, skip_bad=skip_bad)
    note_skipped(recorded.skipped, recorded.skipped_matches)
    if len(recorded.ladders) > 1 and ladder is None:
        listed = ", ".join(sorted(recorded.ladders))
        raise UsageError(f"the file has the ladders {listed}; name one with --ladder, or take all by --pool-ladders")
    compile_ahead([system], by.system.name)
    with working(f"rating with {by.system.name}", len(recorded)) as progress:
        ratings = rate(recorded, by, progress=progress)
    rater = Rater.after(ratings, recorded.ladders[0])
    found = rater.odds(line_up, now)
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
                    "expected": found.expected[number],
                    "win": list(found.win[number]),
                    "draw": list(found.draw[number]),
                }
                for number, team in enumerate(line_up)
            ],
        }
        print_json(document)
        return
    for player in newcomers:
        note(f"{printable(player)} is not in these matches and counts as a newcomer ({rating[player]:.2f})")
    if len(line_up) == 2:
        heads = ["team", "win", "draw", "loss"]
        rows: list[list[object]] = [
            [
                _named(team, rating),
                f"{found.win[a][1 - a]:.1%}",
                f"{found.draw[a][1 - a]:.1%}",
                f"{found.win[1 - a][a]:.1%}",
            ]
            for a, team in enumerate(line_up)
        ]
    else:
        heads = ["team", "expected", *(f"ahead of team {number + 1}" for number in range(len(line_up)))]
        rows = [
            [
                _named(team, rating),
                f"{found.expected[a]:.1%}",
                *("–" if a == b else f"{found.win[a][b]:.1%}" for b in range(len(line_up))),
            ]
            for a, team in enumerate(line_up)
        ]
    print_table(f"Odds by {by.system.name}", heads, rows, right=heads[1:])


def parse_teams(text: str) -> list[list[str]]:
    """ "a,b vs c,d" as [["a", "b"], ["c", "d"]]. Raises UsageError where it is no line-up."""
    sides = re.split(r"\s+vs\s+", text.strip())
    accepted = 'accepted is "a,b vs c,d": players by comma, two teams or more by " vs "'
    try:
        teams = [[name.strip() for name in next(csv.reader([side], skipinitialspace=True), [])] for side in sides]
    except csv.Error as error:
        raise UsageError(f"--teams {text}: {accepted}") from error
    if len(teams) < 2 or not all(team and all(team) for team in teams):
        raise UsageError(f"--teams {text}: {accepted}")
    names = [name for team in teams for name in team]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"--teams {text}: {twice!r} stands in it more than once; accepted is once")
    return teams


def _named(team: list[str], rating: dict[str, float]) -> str:
    return ", ".join(f"{printable(player)} ({rating[player]:.2f})" for player in team)
