"""evenmatch ladder advise: how many placement matches a ladder needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from evenmatch.cli.shared import options
from evenmatch.cli.shared.database_options import DATABASE, Db, counted, opened
from evenmatch.cli.shared.output import note, print_json, print_table, working

if TYPE_CHECKING:
    from evenmatch.lab.ladder.placement import AutoPlacement

Name = Annotated[str, typer.Argument(metavar="NAME", help="The ladder's name.")]
SHOWN_STEPS = (0, 1, 2, 3, 5, 10, 15, 20, 30, 50, 75, 100, 150)  # completed matches


def advise(
    name: Name,
    move: Annotated[
        float,
        typer.Option("--move", metavar="P", help="Percentiles by which the next match may move a placed player."),
    ] = 5.0,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Advise how many placement matches a ladder needs, and how many placement=auto takes, from its recorded matches.

    A player's percentile jumps in the first matches and steadies later. This measures how far the next match moved the
    percentile of players, by the number of matches they had completed, and names the number after which it moves by
    less than --move on average. With the present rules, and nothing is changed.

    The last line is about placement=auto with --placement-bound as --move: when it would have ended for players.

    [bold]Example[/bold]

    evenmatch ladder advise duel --move 3
    """
    from evenmatch.lab.ladder.placement import placement_advice
    from evenmatch.rating import rate
    from evenmatch.service.replay.ladder_history import read_history

    with opened(db) as service, working("rating the recorded matches"):
        history = read_history(service.database, name)
        advice = placement_advice(rate(history.matches, history.rules, journal=True), move)
    present = history.settings.standings.placement
    auto = None if advice.auto is None else advice.auto._asdict()
    if json:
        steps = [step._asdict() for step in advice.steps]
        print_json(
            {
                "ladder": name,
                "move": move,
                "placement": advice.placement,
                "present": present,
                "steps": steps,
                "auto": auto,
            }
        )
        return
    last = advice.steps[-1].completed
    rows = [
        [step.completed, f"{step.players:,}", f"{step.mean:.1f} ± {1.96 * step.error:.1f}"]
        for step in advice.steps
        if step.completed in (*SHOWN_STEPS, advice.placement, last)
    ]
    heads = ("completed matches", "players", "percentiles moved by the next")
    print_table(f"Ladder {name}", heads, rows, right=heads)
    for text in history.notes:
        note(text)
    if advice.placement is None:
        print(f"even after {counted(last, 'match', 'matches')} the next one moves a percentile by {move:g} or more")
    else:
        matches = counted(advice.placement, "match", "matches")
        print(f"after {matches} the next one moves a percentile by less than {move:g}; placement is {present} now")
    print(_auto_text(advice.auto, move))


def _auto_text(auto: AutoPlacement | None, move: float) -> str:
    """A sentence on placement=auto."""
    if auto is None:
        return f"placement=auto with a bound of {move:g} would have placed no player"
    return (
        f"placement=auto with a bound of {move:g} would have placed {auto.placed:,} of the {auto.players:,} players "
        f"with enough matches: half of them after {auto.middle} matches, 80 % after {auto.low} to {auto.high}"
    )
