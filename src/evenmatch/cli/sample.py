"""evenmatch sample: simulate a season of a 6v6 game, rate and explain it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from evenmatch.cli.shared import options
from evenmatch.cli.shared.options import option
from evenmatch.cli.shared.output import note, print_json, print_table, working
from evenmatch.errors import MissingExtraError, UsageError

if TYPE_CHECKING:
    from evenmatch.rating import Ratings


def command(
    folder: Annotated[Path, option("--folder DIR", "Folder for the season, the ratings and the chart.")] = Path(
        "sample"
    ),
    seed: Annotated[int, option("--seed", "Seed of the random season.", low=0)] = 1,
    json: options.Json = False,
) -> None:
    """Simulate a season of a 6v6 game, rate it with wager, explain a match and draw a chart."""
    from evenmatch import rating, tables
    from evenmatch.cli import explain
    from evenmatch.lab.sample import season

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--folder {folder}: {error.strerror}; expected a folder that can be created") from error
    with working("simulating a season of 6v6"):
        played = season(seed)
        matches = played.matches
        tables.write(matches, folder / "season.csv")
    say = note if json else print
    say(f"{folder / 'season.csv'}: {len(matches):,} matches of {len(matches.player)} players; some players quit")

    by = rating.rules("wager")
    with working("rating with wager", len(matches)) as progress:
        ratings = rating.rate(matches, by, journal=True, progress=progress)
        standings = ratings.standings()
        tables.write_arrow(standings, folder / "ratings.csv")
    say(f"{folder / 'ratings.csv'}: rating, percentile and division of all players\n")
    names = standings["player"].to_pylist()
    shown = [names[len(names) * share // 100] for share in (0, 10, 35, 65, 99)]
    picture = _draw(ratings, shown, folder / "rating-paths.html")
    story = explain.story_of(rating.explain(matches, by, _with_a_quitter(ratings)))
    if json:
        print_json(
            {
                "standings": tables.files.texts(standings).to_pylist(),
                "explained": story,
                "picture": picture and str(picture),
            }
        )
        return

    rank_of_skill = {
        name: rank for rank, name in enumerate(sorted(played.skill, key=lambda name: -played.skill[name]), 1)
    }
    rows = [
        [
            rank,
            row["player"],
            row["rating"],
            row["matches"],
            row["percentile"],
            row["division"],
            rank_of_skill[row["player"]],
        ]
        for rank, row in enumerate(standings.filter(standings["placed"]).slice(0, 10).to_pylist(), 1)
    ]
    heads = ("rank", "player", "rating", "matches", "percentile", "division", "rank by true skill")
    right = ("rank", "rating", "matches", "percentile", "rank by true skill")
    print_table(f"The top 10 of {len(matches.player)}, rated by wager", heads, rows, right)

    print("Why did my rating move? A match in which a player quit:\n")
    print(explain.as_text(story))
    if picture:
        print(f"\n{picture}: the ratings of {', '.join(shown[:-1])} and {shown[-1]} over the season")
    print(
        f'Try: evenmatch odds {folder / "season.csv"} -s wager --teams "{names[0]},{names[1]} vs {names[2]},{names[3]}"'
    )
    print(f"     evenmatch backtest {folder / 'season.csv'} --report {folder / 'fit.html'}")


def _draw(ratings: Ratings, players: Sequence[str], path: Path) -> Path | None:
    """Draw the ratings of these players to an HTML file; None, with a note, if plotly is not installed."""
    try:
        ratings.plot(*players).write_html(path)
    except MissingExtraError as error:
        note(f"no picture is drawn: {error}")
        return None
    return path


def _with_a_quitter(ratings: Ratings) -> str:
    import numpy as np

    history = ratings.matches.history
    left = np.bincount(history.slot_match[history.columns.quit], minlength=len(history))
    chosen = np.flatnonzero(left == 1)[-1]
    match_id: str = ratings.matches.match_id[int(chosen)].as_py()
    return match_id
