"""evenmatch ladder: create, show and change ladders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from evenmatch.cli.audit import acting
from evenmatch.cli.ladder_advice import Name, advise
from evenmatch.cli.season import plain_season
from evenmatch.cli.shared import options
from evenmatch.cli.shared.correction_options import NOTHING, ONLY_SEEN, as_document, carry_out, print_effect
from evenmatch.cli.shared.correction_words import about, changed_by, differences, in_words
from evenmatch.cli.shared.database_options import (
    DATABASE,
    Db,
    Id,
    Preview,
    counted,
    minutes_text,
    opened,
    shown_database,
    typed,
)
from evenmatch.cli.shared.output import compile_ahead, note, print_json, print_table, printable
from evenmatch.cli.shared.settings import with_settings
from evenmatch.errors import UsageError

if TYPE_CHECKING:
    from evenmatch.service.ladders import Ladder
    from evenmatch.service.seasons import Season

app = typer.Typer(help="Create, show and change ladders.", no_args_is_help=True)


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

    [bold]Examples[/bold]

    evenmatch ladder create duel --system glicko2

    evenmatch ladder create arena --system wager --param stake=0.04 --title "Arena 6v6" --team-size 6

    evenmatch ladder create duel --system elo --db postgresql://league@db.example/league
    """
    by = options.rules_of(system, preset, param)
    from evenmatch.service.service import Service
    from evenmatch.service.settings import Settings

    chosen = Settings().changed(changes)
    with Service.open(db) as service:
        body = {"system": system, "preset": by.preset, "parameters": by.values()}
        noting = acting(service, "ladder.created", name, body=body)
        made = noting.create_ladder(name, system, by, chosen)
        shown = shown_database(service)
    compile_ahead([made.system], by.system.name)
    if json:
        print_json(described(made))
        return
    print(printable(f"ladder {made.name}: created in {shown}, rated by {by.system.name}"))
    note(f"next: {typed(db, 'import MATCHES', '--ladder', made.name)}")


@app.command(name="list")
def list_(db: Db = DATABASE, json: options.Json = False) -> None:
    """List the ladders.

    [bold]Example[/bold]

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

    [bold]Example[/bold]

    evenmatch ladder archive duel
    """
    _set_archived(name, db, json, archived=True)


@app.command()
def reopen(name: Name, db: Db = DATABASE, json: options.Json = False) -> None:
    """Reopen an archived ladder.

    [bold]Example[/bold]

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
        print(printable(f"ladder {name}: {'is ' + state + ' already' if unchanged else state}"))


@app.command()
def show(name: Name, db: Db = DATABASE, json: options.Json = False) -> None:
    """Show a ladder: settings, system and parameters, counts, seasons and corrections.

    [bold]Example[/bold]

    evenmatch ladder show duel
    """
    from evenmatch.service.export.files import corrections_of

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
        ended = list(map(plain_season, seasons))
        print_json({**described(ladder), "made_at": made["recorded_at"], "seasons": ended, "corrections": later})
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
    system: Annotated[
        str | None, typer.Option("--system", "-s", metavar="S", help="Rate all matches by another system.")
    ] = None,
    preset: options.Preset = None,
    param: options.Param = None,
    begin: Annotated[
        str, typer.Option("--from", metavar="WHEN", help="When other parameters take effect: start or now.")
    ] = "start",
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Leave matches unrated that the new rules cannot rate.")
    ] = False,
    preview: Preview = False,
    event_id: Id = None,
    db: Db = DATABASE,
    json: options.Json = False,
    changes: dict[str, object],
) -> None:
    """Change a ladder: its settings, or what its matches are rated by.

    What is not named stays unchanged; another system or preset starts with its own values. By default, all matches are
    rated again from the start; --from now leaves present ratings and applies only to later matches. If nothing would
    change, nothing is recorded.

    [bold]Examples[/bold]

    evenmatch ladder change duel --placement 5 --title "Duel 1v1"

    evenmatch ladder change duel --param k=20 --from now

    evenmatch ladder change duel --system glicko2 --preview
    """
    if begin not in ("start", "now"):
        raise UsageError(f"--from {begin}: expected start or now")
    if not changes and system is None and preset is None and not param:
        raise UsageError("nothing to change was named; give --system, --preset, --param or settings")
    from evenmatch.service.rule_overrides import choose

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
        document = NOTHING if seen is None else as_document(seen)
        plain_changes = [difference.plain() for difference in changed]
        print_json({"preview": preview, **document, "changes": plain_changes, "ladder": described(after)})
        return
    if seen is not None:
        print_effect(seen, preview)
    for difference in changed:
        print(printable(str(difference)))
    if seen is None and not changed:
        print(printable(f"ladder {name}: nothing to change, all of these values are set already"))
    elif preview:
        note(ONLY_SEEN)
    elif changed or (seen is not None and not seen.done):
        print(printable(f"ladder {name}: changed"))


@app.command()
def decay(
    name: Name,
    preview: Preview = False,
    days: Annotated[
        float,
        typer.Option("--days", min=0, max=366, metavar="N", help="With --preview: after N days without matches."),
    ] = 0,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Lower the ratings of inactive players, on a ladder with --inactivity rating.

    A service does that by itself once a day. Whole weeks without a completed match that ended before today (UTC)
    count, each once, however often this is called.

    [bold]Examples[/bold]

    evenmatch ladder decay duel

    evenmatch ladder decay duel --preview --days 3
    """
    from evenmatch.service.daily_decay import DailyDecay

    if days and not preview:
        raise UsageError(f"--days {days:g} is only for --preview; without it, what falls now is applied")
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
    if preview:
        note(ONLY_SEEN)
    elif seen.moved:
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


app.command()(advise)
