"""evenmatch ladder: create, show and change ladders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from evenmatch.cli.corrections import (
    ONLY_SEEN,
    about,
    as_document,
    carry_out,
    changed_by,
    differences,
    in_words,
    print_effect,
)
from evenmatch.cli.shared import options
from evenmatch.cli.shared.database_options import (
    DATABASE,
    Db,
    Id,
    Preview,
    acting,
    counted,
    minutes_text,
    opened,
    shown_database,
    typed,
)
from evenmatch.cli.shared.derived_options import with_options
from evenmatch.cli.shared.options import argument, option
from evenmatch.cli.shared.output import as_data, compile_ahead, note, print_json, print_table, printable, working
from evenmatch.errors import UsageError
from evenmatch.ladders.settings import SETTINGS

if TYPE_CHECKING:
    from evenmatch.lab.ladder.learning import AutoPlacement
    from evenmatch.ladders.ladders import Ladder
    from evenmatch.ladders.seasons import Season

app = typer.Typer(help="Create, show and change ladders.", no_args_is_help=True)

Name = Annotated[str, argument("NAME", "The ladder's name.")]
OFFERED = {name: item for name, item in SETTINGS.items() if not item.separate}
with_settings = with_options(OFFERED, default="New ladders: {}.")
SHOWN_STEPS = (0, 1, 2, 3, 5, 10, 15, 20, 30, 50, 75, 100, 150)  # completed matches


@app.command()
@with_settings
def create(
    *,
    name: Name,
    system: options.System,
    preset: options.Preset = None,
    param: options.Param = None,
    db: Db = DATABASE,
    json: options.Json = False,
    changes: dict[str, object],
) -> None:
    """Create a ladder, and the database if it does not exist.

    Examples:
    evenmatch ladder create duel --system glicko2
    evenmatch ladder create arena --system wager --param stake=0.04 --title "Arena 6v6" --team-size 6
    evenmatch ladder create duel --system elo --db postgresql://league@db.example/league
    """
    by = options.rules_of(system, preset, param)
    from evenmatch.ladders.settings import Settings
    from evenmatch.operations.service import Service

    chosen = Settings().changed(changes)
    with Service.open(db) as service:
        body = {"system": system, "preset": by.preset, "parameters": by.values()}
        noting = acting(service, "ladder.created", name, body=body)
        made = noting.create_ladder(name, system, by, chosen)
        shown = shown_database(service)
    from evenmatch.operations.kernels import in_context

    loops = [made.system, *([in_context(made.system)] if chosen.context else [])]
    compile_ahead(loops, by.system.name)
    if json:
        print_json(described(made))
        return
    print(printable(f"ladder {made.name}: created in {shown}, rated by {by.system.name}"))
    note(f"next: {typed(db, 'import MATCHES', '--ladder', made.name)}")


@app.command(name="list")
def list_(db: Db = DATABASE, json: options.Json = False) -> None:
    """List the ladders.

    Example:
    evenmatch ladder list --db evenmatch.db
    """
    with opened(db) as service:
        ladders = service.ladders()
        shown = shown_database(service)
    if json:
        print_json([described(ladder) for ladder in ladders])
        return
    heads = ("name", "title", "system", "matches", "players", "season", "state")
    rows = [
        [
            ladder.name,
            ladder.title,
            ladder.rules.system.name,
            f"{ladder.matches:,}",
            f"{ladder.players:,}",
            ladder.season,
            "archived" if ladder.settings.archived else "open" if ladder.due is None else "rebuild due",
        ]
        for ladder in ladders
    ]
    print_table(f"{shown}: {counted(len(rows), 'ladder')}", heads, rows, right=("matches", "players", "season"))


@app.command()
def archive(name: Name, db: Db = DATABASE, json: options.Json = False) -> None:
    """Archive a ladder: it can still be read, but nothing can be added to it. `ladder reopen` undoes this.

    New matches, imports and queue requests are refused; waiting players leave the queues.

    Example:
    evenmatch ladder archive duel
    """
    _set_archived(name, db, json, archived=True)


@app.command()
def reopen(name: Name, db: Db = DATABASE, json: options.Json = False) -> None:
    """Reopen an archived ladder.

    Example:
    evenmatch ladder reopen duel
    """
    _set_archived(name, db, json, archived=False)


def _set_archived(name: str, db: str, json: bool, *, archived: bool) -> None:
    state = "archived" if archived else "open"
    with opened(db) as service:
        unchanged = service.ladder(name).settings.archived == archived
        if not unchanged:
            changes: dict[str, object] = {"archived": archived}
            acting(service, "settings.changed", name, body=changes).change_settings(name, changes)
        after = service.ladder(name)
    if json:
        print_json(described(after))
    else:
        print(printable(f"ladder {name}: {'is already ' + state if unchanged else state}"))


@app.command()
def show(name: Name, db: Db = DATABASE, json: options.Json = False) -> None:
    """Show a ladder: settings, system and parameters, counts, seasons and corrections.

    Example:
    evenmatch ladder show duel
    """
    from evenmatch.ladders.export import corrections_of

    with opened(db) as service:
        ladder = service.ladder(name)
        seasons = service.seasons(name)
        corrections = corrections_of(service.database, name)
    changed = changed_by(corrections)
    made, *later = [
        {**row, "changes": [difference.plain() for difference in own]}
        for row, own in zip(corrections, changed, strict=True)
    ]
    if json:
        print_json({**described(ladder), "made_at": made["recorded_at"], "seasons": seasons, "corrections": later})
        return
    _print(ladder, seasons[-1], str(made["recorded_at"]), len(later), db)
    heads = ("position", "recorded at", "kind", "subject or change", "reason")
    rows = [
        [row["position"], row["recorded_at"], row["kind"], about(row, own), row["reason"]]
        for row, own in zip(later, changed[1:], strict=True)
    ]
    print_table(f"Corrections and changes ({len(rows):,})", heads, rows, right=("position",))


@app.command()
@with_settings
def change(
    *,
    name: Name,
    system: Annotated[str | None, option("--system, -s S", "Rate all matches by another system.")] = None,
    preset: options.Preset = None,
    param: options.Param = None,
    begin: Annotated[str, option("--from WHEN", "When other parameters take effect: start or now.")] = "start",
    skip_bad: Annotated[bool, option("--skip-bad", "Leave matches unrated that the new rules cannot rate.")] = False,
    preview: Preview = False,
    event_id: Id = None,
    db: Db = DATABASE,
    json: options.Json = False,
    changes: dict[str, object],
) -> None:
    """Change the settings of a ladder, or the system and parameters that rate its matches.

    Options that you leave out keep their values; a new system or preset starts with its own. By default, all matches
    are rated again from the start. With --from now, current ratings stay and the change applies to later matches. If
    nothing would change, nothing is recorded.

    Examples:
    evenmatch ladder change duel --placement 5 --title "Duel 1v1"
    evenmatch ladder change duel --param k=20 --from now
    evenmatch ladder change duel --system glicko2 --preview
    """
    if begin not in ("start", "now"):
        raise UsageError(f"--from {begin}: expected start or now")
    if not changes and system is None and preset is None and not param:
        raise UsageError("nothing to change; give --system, --preset, --param or a setting")
    from evenmatch.ladders.descriptions import choose

    with opened(db) as service:
        before = service.ladder(name)
        wanted = before.settings.changed(changes)  # raises for invalid values before anything is changed
        changed = differences(before.settings.plain(), wanted.plain())
        correction = choose(
            *(service, before, system, preset, options.values_of(param)), start=begin == "start", skip_bad=skip_bad
        )
        seen = None if correction is None else carry_out(service, name, correction, preview, event_id)
        if changed and not preview:
            is_second = system is not None or preset is not None or bool(param)  # each event needs its own id
            own_id = f"{event_id}:settings" if event_id is not None and is_second else event_id
            values = {difference.name: changes[difference.name] for difference in changed}
            body = {difference.name: wanted.plain()[difference.name] for difference in changed}
            acting(service, "settings.changed", name, body=body).change_settings(name, values, own_id)
        after = service.ladder(name)
    if json:
        plain_changes = [difference.plain() for difference in changed]
        print_json({"preview": preview, **as_document(seen), "changes": plain_changes, "ladder": described(after)})
        return
    if seen is not None:
        print_effect(seen, preview)
    for difference in changed:
        print(printable(str(difference)))
    if seen is None and not changed:
        print(printable(f"ladder {name}: nothing to change; it already has all of these values"))
    elif preview and seen is None:
        note(ONLY_SEEN)
    elif not preview and (changed or (seen is not None and not seen.done)):
        print(printable(f"ladder {name}: changed"))


@app.command()
def decay(
    name: Name,
    preview: Preview = False,
    days: Annotated[float, option("--days N", "With --preview: after N days without matches.", low=0, high=366)] = 0,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Lower the ratings of inactive players, on a ladder with --inactivity rating.

    The service does this once a day. Every whole week without a completed match that ended before today (UTC) counts
    once, no matter how often you run this command.

    Examples:
    evenmatch ladder decay duel
    evenmatch ladder decay duel --preview --days 3
    """
    from evenmatch.ladders.inactivity import DailyDecay

    if days and not preview:
        raise UsageError(f"--days {days:g} is only for --preview; without it, the decay due now is applied")
    with opened(db) as service:
        if preview:
            seen = DailyDecay(service).preview(name, days)
        else:
            result = DailyDecay(acting(service, "ratings.decayed", name)).apply(name)
            seen = DailyDecay(service).preview(name) if result is None else result.effect
    if json:
        print_json({"ladder": name, "preview": preview, **as_document(seen)})
        return
    print_effect(seen, preview)
    if not preview and seen.moved:
        print(printable(f"ladder {name}: {counted(seen.moved, 'rating')} fell"))


def described(ladder: Ladder) -> dict[str, object]:
    """A ladder as JSON data."""
    return {
        "name": ladder.name,
        "settings": ladder.settings.plain(),
        "system": ladder.system,
        "preset": ladder.rules.preset,
        "parameters": ladder.rules.values(),
        "events": ladder.position,
        "matches": ladder.matches,
        "players": ladder.players,
        "season": ladder.season,
        "rebuild_due_from": ladder.due,
    }


def _print(ladder: Ladder, season: Season, made_at: str, corrections: int, db: str) -> None:
    from evenmatch.options import shown

    others = counted(corrections, "correction or change", "corrections and changes")
    due = f"a rebuild is due; type: {typed(db, 'rebuild', '--ladder', ladder.name)}"
    rows = [
        ["title", ladder.title],
        ["created", made_at],
        ["matches", f"{ladder.matches:,}, and {others}"],
        ["players", f"{ladder.players:,}"],
        ["season", f"{season.title}, since {minutes_text(season.opened_at)} UTC"],
        ["system", ladder.system + (f", preset {ladder.rules.preset}" if ladder.rules.preset else "")],
        ["ratings", "up to date with the ledger" if ladder.due is None else due],
    ]
    rows += [[name, in_words(value, name)] for name, value in ladder.settings.plain().items() if name != "title"]
    print_table(f"Ladder {ladder.name}", ("", ""), rows)
    parameters = [[name, shown(value)] for name, value in ladder.rules.values().items()]
    print_table(f"Parameters of {ladder.rules.system.name}", ("parameter", "value"), parameters)


@app.command()
def advise(
    name: Name,
    move: Annotated[float, option("--move P", "Percentiles that the next match may move a placed player.")] = 5.0,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Recommend a number of placement matches from the recorded matches of a ladder.

    A player's percentile jumps during the first matches and settles later. This command measures how far the next match
    moved players, by the number of matches they had completed, and reports when the average falls below --move. It uses
    the ladder's current rules and changes nothing.

    The last line says when placement=auto, with --move as its --placement-bound, would have placed players.

    Example:
    evenmatch ladder advise duel --move 3
    """
    from evenmatch.corrections.ladder_history import read_history
    from evenmatch.lab.ladder.learning import placement_advice
    from evenmatch.rating import rate

    with opened(db) as service, working("rating the recorded matches"):
        history = read_history(service.database, name)
        advice = placement_advice(rate(history.matches, history.rules, journal=True), move)
    present = history.settings.standings.placement
    if json:
        print_json({"ladder": name, "present": present, **as_data(advice)})
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
    """Describe what placement=auto would have done."""
    if auto is None:
        return f"placement=auto with a bound of {move:g} would have placed no player"
    return (
        f"placement=auto with a bound of {move:g} would have placed {auto.placed:,} of the {auto.players:,} players "
        f"with enough matches: half of them after {auto.middle} matches, 80 % after {auto.low} to {auto.high}"
    )
