"""evenmatch record: record finished matches one by one."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from evenmatch.cli.shared import options
from evenmatch.cli.shared.database_options import DATABASE, Db, OnLadder, counted, ladder_of, opened
from evenmatch.cli.shared.input_files import FILES, FromLadder, adding, matches_in, one_ladder, received
from evenmatch.cli.shared.output import note, print_json, print_table, printable, warn, working
from evenmatch.errors import BadRowsError, EvenmatchError
from evenmatch.times import EPOCH

if TYPE_CHECKING:
    from evenmatch.match import Match
    from evenmatch.recording.receipts import MatchReceipt
    from evenmatch.tables import MatchTable

AT_ONCE = 500  # matches in one call of record_many
SHOWN = 200  # rows of the table of receipts
LISTED = 50  # refused matches that are listed


def command(
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help=f"Finished matches: {FILES}."),
    ],
    ladder: OnLadder = None,
    from_ladder: FromLadder = None,
    unrated: Annotated[bool, typer.Option("--unrated", help="Record the matches without changing ratings.")] = (False),
    time_format: options.TimeFormat = "seconds",
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Record finished matches and print the rating changes of each.

    Each match is recorded separately: refused ones are listed, the others are recorded, and the exit code is then 1.
    (`import` is for whole seasons: it adds all matches of a file or none.) A match that was recorded before changes
    nothing and returns its first receipt again.

    A file with one ladder is recorded on L whatever its name in the file; of several ladders, --from or else L is used.

    [bold]Examples[/bold]

    evenmatch record tonight.csv --ladder duel

    cat tonight.jsonl | evenmatch record - --ladder duel --json

    evenmatch record tonight.csv --ladder duel --from ranked-1v1
    """
    from evenmatch.recording.receipts import summary

    with opened(db) as service, received(file) as (path, called), adding():
        name = ladder_of(service, ladder)
        read = one_ladder(matches_in(path, called, True, time_format), name, from_ladder)
        before = service.ladder(name).position
        receipts: list[MatchReceipt] = []
        refused = [(problem.match_id, str(problem)) for problem in read.skipped]
        with working(f"recording on {name}", len(read)) as progress:
            for first in range(0, len(read), AT_ONCE):
                listed = list(matches_of(read.take(slice(first, first + AT_ONCE)), name))
                outcomes = service.record_many(name, listed, rated=not unrated)
                for match, outcome in zip(listed, outcomes, strict=True):
                    if isinstance(outcome, EvenmatchError):
                        refused.append((match.id, _reason(outcome)))
                    else:
                        receipts.append(outcome)
                progress(first + len(listed))
    known = sum(receipt.position <= before for receipt in receipts)
    odd = [receipt.other_sizes for receipt in receipts if receipt.position > before and receipt.other_sizes is not None]
    for text in summary(odd):
        warn(text)
    late = sum(receipt.position > before and receipt.counted_at is not None for receipt in receipts)
    if late:
        warn(
            f"{counted(late, 'match', 'matches')} ended before the newest match of the ladder and "
            f"{'counts' if late == 1 else 'count'} as if played after it; "
            "`evenmatch import --at-their-time` rates such matches at the time played"
        )
    if json:
        problems = [{"match_id": match_id, "reason": reason} for match_id, reason in refused]
        documents = [{"there_already": receipt.position <= before, **plain(receipt)} for receipt in receipts]
        print_json({"ladder": name, "receipts": documents, "refused": problems})
    else:
        _print(name, receipts, known)
    for _, reason in refused[:LISTED]:
        note(f"refused: {reason}")
    if len(refused) > LISTED:
        note(f"… and {len(refused) - LISTED:,} more refused (--json lists all)")
    if refused:
        raise typer.Exit(1)


def matches_of(table: MatchTable, ladder: str) -> Iterator[Match]:
    """The rows of a table as Match objects on a ladder."""
    from evenmatch.match import Appearance, Match, Team

    c, names = table.history.columns, table.player_names
    slots = zip(
        [names[player] for player in c.player.tolist()],
        *(map(_known, column.tolist()) for column in (c.score, c.seconds)),
        c.quit.tolist(),
        map(_known, c.performance.tolist()),
        c.keep.tolist(),
        strict=True,
    )
    appearances = [Appearance(*slot) for slot in slots]
    starts, first = c.slot_start.tolist(), c.team_start.tolist()
    places, scores = c.place.tolist(), list(map(_known, c.team_score.tolist()))
    teams = [
        Team(tuple(appearances[starts[team] : starts[team + 1]]), places[team], scores[team])
        for team in range(len(places))
    ]
    for index, (match_id, time, duration) in enumerate(
        zip(table.match_id.to_pylist(), c.time.tolist(), c.duration.tolist(), strict=True)
    ):
        moment = EPOCH + timedelta(microseconds=time)
        yield Match(match_id, moment, tuple(teams[first[index] : first[index + 1]]), ladder, _known(duration))


def _known(value: float) -> float | None:
    return None if value != value else value  # noqa: PLR0124 - NaN stands for a value that was not recorded


def _reason(error: EvenmatchError) -> str:
    return str(error.problems[0]) if isinstance(error, BadRowsError) else str(error)


def plain(receipt: MatchReceipt) -> dict[str, object]:
    """A receipt as JSON data."""
    return {
        "match_id": receipt.match_id,
        "position": receipt.position,
        "rated": receipt.rated,
        "warnings": receipt.warnings,
        "teams": [
            [
                {
                    **{name: value for name, value in line.change._asdict().items() if name != "factors"},
                    "factors": {
                        name: _known(value) if isinstance(value, float) else value
                        for name, value in line.change.factors.items()
                    },
                    "percentile": line.percentile,
                    "division": line.division,
                }
                for line in team
            ]
            for team in receipt.teams
        ],
    }


def _print(ladder: str, receipts: list[MatchReceipt], known: int) -> None:
    rows: list[list[object]] = []
    for receipt in receipts:
        if not receipt.rated:
            rows.append([receipt.match_id, "(not rated)", None, None, None, None, None])
        for line in (line for team in receipt.teams for line in team):
            change = line.change
            moved = f"{change.after - change.before:+.2f}"
            rows.append(
                [receipt.match_id, change.player, change.before, change.after, moved, line.percentile, line.division]
            )
    new = len(receipts) - known
    title = f"{ladder}: {counted(new, 'match', 'matches')} recorded" + (f", {known:,} there already" if known else "")
    if not rows:
        print(printable(title))
        return
    more = f" (the first {SHOWN} rows; --json prints all)" if len(rows) > SHOWN else ""
    heads = ("match", "player", "before", "after", "change", "percentile", "division")
    print_table(title + more, heads, rows[:SHOWN], right=heads[2:6])
