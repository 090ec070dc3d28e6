"""evenmatch explain: describe a match and its rating changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from evenmatch.cli.shared import options
from evenmatch.cli.shared.database_options import DATABASE, Db, OnLadder, ladder_of, opened
from evenmatch.cli.shared.options import argument, option
from evenmatch.cli.shared.output import compile_ahead, note_skipped, print_json, printable, working
from evenmatch.cli.shared.reading import NO_READING, Reading, reads_matches
from evenmatch.errors import UnknownNameError, UsageError

if TYPE_CHECKING:
    from evenmatch.operations.service import Service
    from evenmatch.players.explanations import Finish
    from evenmatch.players.headlines import Explanation
    from evenmatch.rating import Ratings
    from evenmatch.systems.system import Change, FactorValue, Rules

Story = dict[str, Any]  # the document that --json prints


@reads_matches
def command(
    match: Annotated[str, option("--match, -m ID", "The match_id of the match.")],
    matches: Annotated[Path | None, argument("MATCHES", "A file of recorded matches, instead of a ladder.")] = None,
    system: Annotated[str | None, option("--system, -s NAME", "With MATCHES: a rating system or .py file.")] = None,
    preset: options.Preset = None,
    param: options.Param = None,
    pool_ladders: options.PoolLadders = False,
    skip_bad: options.SkipBad = False,
    reading: Reading = NO_READING,
    ladder: OnLadder = None,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Explain one match: line-ups, predicted odds, and why each rating changed, with the factors of the change.

    The match is on a ladder, or in a file that is rated with --system.

    Examples:
    evenmatch explain --ladder arena --match m17
    evenmatch explain season.csv --match m17 --system wager
    """
    if matches is None:
        options.check_no_file_options(system, preset, param, pool_ladders, skip_bad, reading.is_given)
        with opened(db) as service:
            story = _of_ladder(service, ladder_of(service, ladder), match)
    else:
        if ladder is not None:
            raise UsageError(f"--ladder is for a database, {matches} is a file; use only one of the two")
        if system is None:
            raise UsageError(f"{matches} needs a rating system; name one with --system")
        by = options.rules_of(system, preset, param)
        compile_ahead([system], by.system.name)
        story = _of_file(matches, by, match, pool_ladders, skip_bad, reading)
    if json:
        print_json(story)
    else:
        print(as_text(story))


def _of_ladder(service: Service, ladder: str, match: str) -> Story:
    """Describe a match as the ladder rates it now."""
    from evenmatch.ladders.ladder_queries import LadderQueries
    from evenmatch.times import iso_time

    rules = service.ladder(ladder).rules
    _, details = LadderQueries(service).match(ladder, match)
    teams = []
    for side, told in zip(details.sides, details.explanations or ((),) * len(details.sides), strict=True):
        players = [
            {"player": one.player, "seconds": one.seconds, "quit": one.quit, **_why(line and line.change, explanation)}
            for (one, line), explanation in zip(side.parts, told or (None,) * len(side.parts), strict=True)
        ]
        teams.append(_team(side.finish, told, players))
    return {
        "match_id": details.match_id,
        "ladder": ladder,
        "played_at": iso_time(details.played_at),
        "system": rules.system.name,
        "preset": rules.preset,
        "parameters": rules.values(),
        "state": details.state,
        "reason": details.reason,
        "teams": teams,
    }


def _of_file(matches: Path, by: Rules, match: str, pool_ladders: bool, skip_bad: bool, reading: Reading) -> Story:
    """Describe a match of a file after rating all earlier ones."""
    from evenmatch.rating import explain, rateable

    read = options.matches_of(matches, None, pool_ladders, skip_bad, reading)
    recorded = rateable(read, by, skip_bad=skip_bad)
    note_skipped(recorded.skipped, recorded.skipped_matches)
    try:
        with working(f"rating with {by.system.name}"):
            return story_of(explain(recorded, by, match))
    except UnknownNameError:
        raise UsageError(f"--match {match}: {matches} has no match with this id") from None


def story_of(ratings: Ratings) -> Story:
    """The first match of `ratings` and its rating changes, as JSON data."""
    table, by = ratings.matches, ratings.rules
    c = table.history.columns
    import pyarrow as pa

    from evenmatch.players.explanations import Finish, known_number
    from evenmatch.players.headlines import explain
    from evenmatch.tables.files import iso_8601
    from evenmatch.tables.table import MICROSECONDS

    teams = []
    changes = ratings.changes(0)
    for team, told in enumerate(explain(by, table.history, changes)):
        slots = slice(*c.slot_start[team : team + 2].tolist())
        times, quits = c.seconds[slots].tolist(), c.quit[slots].tolist()
        score, expected = known_number(float(c.team_score[team])), float(ratings.expected[team])
        players = [
            {"player": change.player, "seconds": known_number(seconds), "quit": left, **_why(change, explanation)}
            for change, seconds, left, explanation in zip(changes[team], times, quits, told, strict=True)
        ]
        teams.append(_team(Finish(table.team[team].as_py(), int(c.place[team]), score, expected), told, players))
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


def _team(finish: Finish, told: Sequence[Explanation], players: list[Story]) -> Story:
    """A team as JSON data."""
    label, place, score, expected = finish
    shared = _known(told[0].factors_of_team) if told else None
    return {
        **{"team": label, "place": place, "team_score": score, "expected": expected},
        **{"factors": shared, "players": players},
    }


def _why(change: Change | None, explanation: Explanation | None) -> Story:
    """A player's change and its explanation as JSON data; the headline is about the player, not to them."""
    if change is None or explanation is None:
        return {"before": None, "after": None}
    return {
        **{"before": change.before, "after": change.after},
        **{"headline": explanation.of_another, "otherwise": explanation.otherwise_of_another},
        "factors": _known(explanation.factors_of_player),
    }


def _known(factors: Mapping[str, FactorValue]) -> Story:
    from evenmatch.players.explanations import known

    return {name: known(value) for name, value in factors.items()}


def as_text(story: Story) -> str:
    """The match as text for people."""
    from evenmatch.players.explanations import Finish, movement, outcome, standing_of

    teams = [
        Finish(printable(str(team["team"])), team["place"], team["team_score"], team["expected"])
        for team in story["teams"]
    ]
    lines = [
        f"Match {printable(story['match_id'])}, ladder {printable(story['ladder'])}, {story['played_at']}, "
        f"rated with {story['system']}",
        outcome(teams),
    ]
    if story.get("reason"):
        lines.append(f"It changed no rating: {printable(str(story['reason']))}.")
    for finish, team in zip(teams, story["teams"], strict=True):
        lines.append(f"\n{standing_of(finish)}")
        if team["factors"]:
            lines.append(f"  The same for the whole team: {_factors(team['factors'])}")
        width = max(len(player["player"]) for player in team["players"])
        for player in team["players"]:
            name = f"  {printable(player['player']):<{width}}"
            if player["before"] is None:
                lines.append(f"{name}{'  (quit)' if player['quit'] else ''}".rstrip())
                continue
            moved = movement(player["before"], player["after"], quit_early=player["quit"])
            told = [" ".join(filter(None, (player["headline"], player["otherwise"]))), _factors(player["factors"])]
            lines += [f"{name}  {moved}", *(f"  {'':<{width}}  {line}" for line in told if line)]
    return "\n".join(lines)


def _factors(factors: Story) -> str:
    """Factors in one line."""
    from evenmatch.players.explanations import factor_text

    return ", ".join(f"{name.replace('_', ' ')} {factor_text(value)}" for name, value in factors.items())
