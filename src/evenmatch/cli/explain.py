"""evenmatch explain: one match as a person would tell it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenmatch.cli import options
from evenmatch.cli.output import note_skipped, print_json, printable, working
from evenmatch.errors import UnknownNameError, UsageError

if TYPE_CHECKING:
    from evenmatch.rating import Ratings

Story = dict[str, Any]  # as --json prints it


def command(
    matches: options.Matches,
    match: Annotated[str, typer.Option("--match", "-m", metavar="ID", help="The match_id of the match.")],
    system: options.System,
    preset: options.Preset = None,
    param: options.Param = None,
    pool_ladders: options.PoolLadders = False,
    skip_bad: options.SkipBad = False,
    json: options.Json = False,
) -> None:
    """Tell why each rating moved in one match: line-ups, odds before, and the factors of every change.

    [bold]Example[/bold]

    evenmatch explain season.csv --match m17 --system wager
    """
    by = options.rules_of(system, preset, param)
    from evenmatch.rating import explain, rateable

    recorded = rateable(options.matches_of(matches, None, pool_ladders, None, skip_bad), by, skip_bad=skip_bad)
    note_skipped(recorded.skipped_matches, len(recorded.skipped))
    try:
        with working(f"rating with {by.system.name}"):
            story = told(explain(recorded, by, match))
    except UnknownNameError:
        raise UsageError(f"--match {match}: {matches} has no match of that id") from None
    if json:
        print_json(story)
    else:
        print(as_text(story))


def told(ratings: Ratings) -> Story:
    """The story of the one match that was rated, as data."""
    table, by = ratings.matches, ratings.rules
    c = table.history.columns
    import pyarrow as pa

    from evenmatch.service.stories import known, known_number
    from evenmatch.tables.files import iso_8601
    from evenmatch.tables.table import MICROSECONDS

    teams = []
    for at, changes in enumerate(ratings.changes(0)):
        seconds = c.seconds[c.slot_start[at] : c.slot_start[at + 1]].tolist()
        quits = c.quit[c.slot_start[at] : c.slot_start[at + 1]].tolist()
        teams.append(
            {
                "team": table.team[at].as_py(),
                "place": int(c.place[at]),
                "team_score": known_number(float(c.team_score[at])),
                "expected": float(ratings.expected[at]),
                "players": [
                    {
                        "player": change.player,
                        "before": change.before,
                        "after": change.after,
                        "seconds": known_number(time),
                        "quit": quit_early,
                        "factors": {name: known(value) for name, value in change.factors.items()},
                        "reason": by.system.tell(change, by.parameters),
                    }
                    for change, time, quit_early in zip(changes, seconds, quits, strict=True)
                ],
            }
        )
    played = pa.chunked_array([pa.array(c.time).cast(MICROSECONDS)])
    return {
        "match_id": table.match_id[0].as_py(),
        "ladder": table.ladders[int(table.ladder[0])],
        "played_at": iso_8601(played)[0].as_py(),
        "system": by.system.name,
        "preset": by.preset,
        "parameters": by.values(),
        "teams": teams,
    }


def as_text(story: Story) -> str:
    """The story in words."""
    from evenmatch.service.stories import Finish, movement, outcome, standing_of

    teams = [
        Finish(printable(str(team["team"])), team["place"], team["team_score"], team["expected"])
        for team in story["teams"]
    ]
    lines = [
        f"Match {printable(story['match_id'])}, ladder {printable(story['ladder'])}, {story['played_at']}, "
        f"rated with {story['system']}",
        outcome(teams),
    ]
    for finish, team in zip(teams, story["teams"], strict=True):
        lines.append(f"\n{standing_of(finish)}")
        width = max(len(player["player"]) for player in team["players"])
        for player in team["players"]:
            moved = movement(player["before"], player["after"], quit_early=player["quit"])
            lines.append(f"  {printable(player['player']):<{width}}  {moved}\n  {'':<{width}}  {player['reason']}")
    return "\n".join(lines)
