"""evenmatch ladder: make ladders, look at them, change them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from evenmatch.cli import options, settings
from evenmatch.cli.correcting import as_document, print_preview
from evenmatch.cli.database import DATABASE, Db, Preview, counted, minutes_text, opened, shown_database
from evenmatch.cli.output import note, print_json, print_table, printable, working
from evenmatch.cli.season import plain_season
from evenmatch.errors import UsageError

if TYPE_CHECKING:
    from evenmatch.service.ladders import ChangeRules, Ladder
    from evenmatch.service.seasons import Season
    from evenmatch.service.service import Service
    from evenmatch.systems.system import Rules

app = typer.Typer(help="Make ladders, look at them, change them.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The ladder's name.")]


@app.command()
def create(
    name: Name,
    system: options.System,
    preset: options.Preset = None,
    param: options.Param = None,
    title: settings.Title = None,
    placement: settings.Placement = None,
    active_days: settings.ActiveDays = None,
    divisions: settings.Divisions = None,
    division_margin: settings.DivisionMargin = None,
    team_size: settings.TeamSize = None,
    reset: settings.Reset = None,
    factor: settings.Factor = None,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Make a ladder, and the database where it is not there yet.

    [bold]Examples[/bold]

    evenmatch ladder create duel --system glicko2

    evenmatch ladder create arena --system wager --param stake=2 --title "Arena 6v6" --team-size 6

    evenmatch ladder create duel --system elo --db postgresql://league@db.example/league
    """
    by = options.rules_of(system, preset, param)
    changes = settings.settings_of(title, placement, active_days, divisions, division_margin, team_size, reset, factor)
    from evenmatch.service.service import Service
    from evenmatch.service.settings import Settings

    chosen = Settings().changed(changes)
    with Service.open(db) as service:
        made = service.create_ladder(name, system, by, chosen)
        shown = shown_database(service)
    if json:
        print_json(described(made))
        return
    print(printable(f"ladder {made.name}: made in {shown}, rated by {by.system.name}"))
    note(f"next: evenmatch import MATCHES --ladder {made.name}{'' if db == DATABASE else f' --db {db}'}")


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
    heads = ("name", "title", "system", "matches", "players", "season", "rebuild")
    rows = [
        [
            one.name,
            one.title,
            one.rules.system.name,
            f"{one.matches:,}",
            f"{one.players:,}",
            one.season,
            "–" if one.due is None else "due",
        ]
        for one in ladders
    ]
    print_table(f"{shown}: {counted(len(rows), 'ladder')}", heads, rows, right=("matches", "players", "season"))


@app.command()
def show(name: Name, db: Db = DATABASE, json: options.Json = False) -> None:
    """Show a ladder: its settings, its system with every parameter, its numbers, its seasons and corrections.

    [bold]Example[/bold]

    evenmatch ladder show duel
    """
    from evenmatch.service.exports import corrections_of

    with opened(db) as service:
        ladder = service.ladder(name)
        seasons = service.seasons(name)
        corrections = corrections_of(service.database, name)
    if json:
        print_json({**described(ladder), "seasons": list(map(plain_season, seasons)), "corrections": corrections})
        return
    _print(ladder, seasons[-1])
    heads = ("position", "recorded at", "what", "whom or which", "reason")
    rows = [[row["position"], row["recorded_at"], row["kind"], _about(row), row["reason"]] for row in corrections]
    print_table(f"Corrections and changes ({len(rows):,})", heads, rows, right=("position",))


@app.command()
def change(
    name: Name,
    system: Annotated[
        str | None, typer.Option("--system", "-s", metavar="S", help="Rate by another system, from the start.")
    ] = None,
    preset: options.Preset = None,
    param: options.Param = None,
    begin: Annotated[
        str, typer.Option("--from", metavar="WHEN", help="Other parameters hold from the start, or from now on.")
    ] = "start",
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Leave matches unrated that the new rules cannot rate.")
    ] = False,
    preview: Preview = False,
    title: settings.Title = None,
    placement: settings.Placement = None,
    active_days: settings.ActiveDays = None,
    divisions: settings.Divisions = None,
    division_margin: settings.DivisionMargin = None,
    team_size: settings.TeamSize = None,
    reset: settings.Reset = None,
    factor: settings.Factor = None,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Change a ladder: its settings, or what its matches are rated by.

    What is not named stays as it is; another system, or a preset, begins with its own values. From the start, all
    matches are rated anew; --from now leaves the ratings there are and changes later matches alone.

    [bold]Examples[/bold]

    evenmatch ladder change duel --placement 5 --title "Duel 1v1"

    evenmatch ladder change duel --param k=20 --from now

    evenmatch ladder change duel --system glicko2 --preview
    """
    if begin not in ("start", "now"):
        raise UsageError(f"--from {begin}: accepted is start or now")
    changes = settings.settings_of(title, placement, active_days, divisions, division_margin, team_size, reset, factor)
    if not changes and system is None and preset is None and not param:
        raise UsageError("nothing to change was named; accepted are --system, --preset, --param and settings")
    from evenmatch.service.ladders import ChangeRules

    with opened(db) as service:
        before = service.ladder(name)
        before.settings.changed(changes)  # raises for what it does not accept, before anything is changed
        if system is not None or preset is not None or param:
            by = _other_rules(before, system, preset, param)
            wish = ChangeRules(before.system if system is None else system, by, begin == "start", skip_bad)
            document = _rate_by(service, before, wish, preview, json)
        else:
            document = {"matches": 0, "players": 0, "moves": []}
        if not preview and changes:
            service.change_settings(name, changes)
        after = service.ladder(name)
    if json:
        print_json({"preview": preview, **document, "ladder": described(after)})
        return
    for setting in changes:
        old, new = before.settings.plain()[setting], after.settings.changed(changes).plain()[setting]
        print(printable(f"{setting}: {_told(old)} → {_told(new)}"))
    print(printable(f"ladder {name}: {'nothing was changed, this is a preview' if preview else 'changed'}"))


def _other_rules(ladder: Ladder, system: str | None, preset: str | None, params: list[str] | None) -> Rules:
    """The rules that the options name, on top of the ladder's where the system stays."""
    same = system is None or system in (ladder.system, ladder.rules.system.name)
    if not same or preset is not None:
        return options.rules_of(ladder.system if system is None else system, preset, params)
    from evenmatch.systems.system import Rules

    return Rules.of(ladder.rules.system, ladder.rules.preset, **(ladder.rules.values() | options.values_of(params)))


def _rate_by(service: Service, ladder: Ladder, wish: ChangeRules, preview: bool, json: bool) -> dict[str, object]:
    """Rate by other rules, or show what that would do; the part of the document about it."""
    with working("what would change", ladder.position) as progress:
        seen = service.preview(ladder.name, wish, progress)
    if not preview:
        with working("rating anew", ladder.position) as progress:
            service.correct(ladder.name, wish, progress)
    if not json:
        print_preview(seen, preview)
    return as_document(seen)


def described(ladder: Ladder) -> dict[str, object]:
    """A ladder as data."""
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


def _print(ladder: Ladder, season: Season) -> None:
    from evenmatch.systems.parameter import shown

    chosen = ladder.settings.plain()
    others = counted(ladder.position - ladder.matches, "correction or change", "corrections and changes")
    due = f"a rebuild is due: evenmatch rebuild --ladder {ladder.name}"
    rows = [
        ["title", ladder.title],
        ["matches", f"{ladder.matches:,}, and {others}"],
        ["players", f"{ladder.players:,}"],
        ["season", f"{season.title}, since {minutes_text(season.opened_at)} UTC"],
        ["system", ladder.system + (f", preset {ladder.rules.preset}" if ladder.rules.preset else "")],
        ["ratings", "as the ledger says" if ladder.due is None else due],
    ]
    rows += [[name, _told(value)] for name, value in chosen.items() if name != "title"]
    print_table(f"Ladder {ladder.name}", ("", ""), rows)
    parameters = [[name, shown(value)] for name, value in ladder.rules.values().items()]
    print_table(f"Parameters of {ladder.rules.system.name}", ("parameter", "value"), parameters)


def _about(row: dict[str, object]) -> str | None:
    """Whom or what a correction is about."""
    event = row["event"]
    assert isinstance(event, dict)
    if row["into"] is not None:
        return f"{row['player']} into {row['into']}"
    if row["kind"] == "ladder-changed" and "system" in event:
        return f"system {event['system']}" + ("" if event["start"] else ", from here on")
    if row["kind"] == "ladder-changed":
        return "settings"
    named = row["player"] or row["match_id"] or event.get("title")
    return None if named is None else str(named)


def _told(value: object) -> str:
    """A setting in words."""
    if isinstance(value, list):
        return ", ".join(f"{name} from {lowest}" for name, lowest in value)
    if isinstance(value, float):
        return f"{value:g}"
    return "any" if value is None else str(value)
