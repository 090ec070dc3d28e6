"""evenmatch ladder: create, show and change ladders, and advise on placement matches."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from evenmatch.cli.audit import acting
from evenmatch.cli.corrections import NOTHING, ONLY_SEEN, as_document, carry_out, print_effect
from evenmatch.cli.season import plain_season
from evenmatch.cli.shared import options
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
from evenmatch.cli.shared.output import compile_ahead, note, print_json, print_table, printable, working
from evenmatch.errors import UsageError
from evenmatch.ladders.settings import SETTINGS
from evenmatch.options import Number, Option, shown

if TYPE_CHECKING:
    from evenmatch.lab.ladder.learning import AutoPlacement
    from evenmatch.ladders.ladders import Ladder
    from evenmatch.ladders.seasons import Season


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
    from evenmatch.corrections.ladder_history import read_history
    from evenmatch.lab.ladder.learning import placement_advice
    from evenmatch.rating import rate

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


OFFERED = {name: option for name, option in SETTINGS.items() if not option.separate}
_FILE = typer.Option("--divisions", metavar="FILE", help="A .csv with columns name, lowest (percentile).")


def with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command an option for every setting; it takes those that were given as `changes`."""
    own = inspect.signature(command, eval_str=True)
    options = [_parameter(name, option) for name, option in OFFERED.items()]

    @functools.wraps(command)
    def wrapper(**given: Any) -> None:  # noqa: ANN401 - as the options are typed
        typed = {name: given.pop(name) for name in OFFERED}
        command(**given, changes={name: _value(name, text) for name, text in typed.items() if text is not None})

    parameters = [parameter for name, parameter in own.parameters.items() if name != "changes"]
    before_database = [parameter.name for parameter in parameters].index("db")
    parameters[before_database:before_database] = options
    wrapper.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return wrapper


def _parameter(name: str, option: Option) -> inspect.Parameter:
    if name == "divisions":
        kind: object = Annotated[Path | None, _FILE]
    else:
        new = f" New ladders: {shown(option.default)}." if option.default not in ("", None) else ""
        metavar = "N" if isinstance(option, Number) else "TEXT"
        named = f"--{name.replace('_', '-')}"
        kind = Annotated[str | None, typer.Option(named, metavar=metavar, help=f"{option.meaning}{new}")]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)


def _value(name: str, given: str | Path) -> object:
    if isinstance(given, Path):
        from evenmatch.cli.shared.divisions_file import read_divisions

        return read_divisions(given)
    try:
        return SETTINGS[name].read(given)
    except (ValueError, TypeError, OverflowError):
        raise UsageError(f"--{name.replace('_', '-')} {given}: expected {SETTINGS[name].accepts}") from None


Row = Mapping[str, object]


class Difference(NamedTuple):
    """The old and new value of a setting, a parameter, the preset or the system."""

    name: str
    old: object
    new: object

    def __str__(self) -> str:
        return f"{self.name}: {in_words(self.old, self.name)} → {in_words(self.new, self.name)}"

    def plain(self) -> dict[str, object]:
        """The difference as JSON data."""
        return {"name": self.name, "from": self.old, "to": self.new}


def differences(before: Mapping[str, object], after: Mapping[str, object]) -> list[Difference]:
    """The differences of the names that are in both mappings."""
    return [
        Difference(name, before[name], new) for name, new in after.items() if name in before and before[name] != new
    ]


def in_words(value: object, name: str = "") -> str:
    """The value of a setting or parameter as text."""
    from evenmatch.options import shown

    if name == "divisions" and isinstance(value, list):
        return ", ".join(f"{division} from {lowest}" for division, lowest in value)
    if name == "team_size" and value is None:
        return "any"
    return "none" if value == "" else shown(value)


def changed_by(rows: Sequence[Row]) -> list[list[Difference]]:
    """For each correction of a ladder, creation first, the rules and settings that it changed."""
    rules: Mapping[str, object] = {}
    settings: Mapping[str, object] = {}
    changes = []
    for row in rows:
        event = _mapping(row["event"])
        now_rules = _rules(event) if "parameters" in event else rules
        now_settings = _mapping(event.get("settings", settings))
        changes.append(_between(rules, now_rules) + differences(settings, now_settings))
        rules, settings = now_rules, now_settings
    return changes


def _between(before: Mapping[str, object], after: Mapping[str, object]) -> list[Difference]:
    """The differences of two sets of rules; parameters are compared only if the system is the same."""
    names = list(after) if before.get("system") == after.get("system") else ["system"]
    return differences({name: before[name] for name in names if name in before}, {name: after[name] for name in names})


def _rules(event: Mapping[str, object]) -> dict[str, object]:
    return {"system": event["system"], "preset": event["preset"], **_mapping(event["parameters"])}


def about(row: Row, changed: Sequence[Difference]) -> str | None:
    """The subject and content of a correction as text, or None."""
    event, player = _mapping(row["event"]), row["player"]
    match str(row["kind"]):
        case "ladder-changed":
            when = "" if "parameters" not in event else ", from the start" if event["start"] else ", from now on"
            text: object = ("; ".join(map(str, changed)) or "the same values") + when
        case "player-banned":
            text = f"{player}, {event['rule']}{_since(event['since'])}"
        case "player-merged":
            text = f"{player} into {row['into']}"
        case "player-renamed":
            text = f"{event['from']} → {player}" if "from" in event else f"now {player}"
        case "ratings-started":
            text = counted(int(str(event["count"])), "player")
        case "ratings-decayed":
            text = f"{counted(int(str(event['count'])), 'player')}, {in_words(event['rate'])} a week"
        case "matches-inserted":
            text = counted(int(str(event["matches"])), "match", "matches")
        case "season-opened":
            text = f"{event['title']}, factor {in_words(event['factor'])}"
        case _:
            text = player or row["match_id"]
    return None if text is None else str(text)


def _since(since: object) -> str:
    from evenmatch.times import iso_time

    return f", since {iso_time(since)}" if isinstance(since, int) else ""


def _mapping(value: object) -> Mapping[str, object]:
    assert isinstance(value, Mapping)
    return value


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
    from evenmatch.ladders.settings import Settings
    from evenmatch.operations.service import Service

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
    from evenmatch.ladders.inactivity import DailyDecay

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
