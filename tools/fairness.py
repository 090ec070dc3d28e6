"""Write the tables of docs/fairness.md: `python tools/fairness.py [PART ...]`, about half an hour on two cores.

Parts are behaviours, invariants, newcomers, policies, cures and suspects; without one, all are written. An audit keeps
finished seasons in a file, so an interrupted run continues. The text around the tables is written by hand.
"""

from __future__ import annotations

import argparse
import json
import math
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from evenmatch import rules
from evenmatch.lab import behaviours as behaviour
from evenmatch.lab.fairness.suspects import RATE, HonestScores, Table, honest_scores_like, judged, table_of
from evenmatch.lab.fairness.suspects import suspects as find_suspects
from evenmatch.lab.seasons.season import SeasonRecord, simulate_season
from evenmatch.lab.seasons.settings import SeasonSettings

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "fairness.md"
KEPT = ROOT / "benchmarks" / "out" / "fairness.seasons.jsonl"
SMALL = "--dose 1 --players 120 --matches 900 --seeds 101:105"
CURED = {
    "Switching to the winner": f"--system all --behaviour win_switcher --vary 'longest team counts' {SMALL}",
    "Losing to a friend": f"--system all --behaviour opposing_crew --vary 'no quiet hours' {SMALL}",
    "Stacking": f"--system all --behaviour stacker --vary 'no parties' {SMALL}",
    "Leaving when behind": "--system even,scorefactor,trueskill,wenglin --behaviour rage_quitter "
    f"--vary 'leaving saves no time' {SMALL}",
    "Trading wins": f"--system planeswalker --behaviour win_trader --vary 'no quiet hours' {SMALL}",
    "Two accounts": f"--system elo,prav --behaviour alt_splitter --vary '50 matches to be listed' {SMALL}",
    "Playing for score under scorefactor": f"--system scorefactor --behaviour stat_padder --vary preset {SMALL}",
    "Playing for score under prav": f"--system prav --behaviour stat_padder --vary preset,outcome {SMALL}",
    "Switching under wager": f"--system wager --behaviour win_switcher --vary preset,uneven {SMALL}",
    "Losing to a friend under wager": f"--system wager --behaviour opposing_crew --vary preset,uneven {SMALL}",
    "Stacking under wager": f"--system wager --behaviour stacker --vary preset,uneven {SMALL}",
    "Switching under prav": f"--system prav --behaviour win_switcher --vary preset,outcome {SMALL}",
    "Stacking under prav": f"--system prav --behaviour stacker --vary preset,outcome {SMALL}",
}
UPSETS = (
    "--system wager --behaviour upset_attacker --vary modifier_limit "
    "--dose 0.3 --seeds 101:108 --players 100 --matches 4000 --culprits 0.1"
)
Rows = Sequence[Sequence[str]]
UNSEEN = range(7001, 7004)  # seeds of the seasons in which suspects are looked for
MATCHES = {"duel": 6000, "team": 1600, "sixes": 1100, "brawl": 1600}  # about 50 of each of 240 players
MIXTURE = "booster_crew,win_switcher,sandbagger,smurf,rage_quitter,stat_padder"
TRADES = "opposing_crew,win_trader,sandbagger,smurf,rage_quitter,stat_padder"
# behaviours, dose, share of the players, games
CULPRITS = (
    ("booster_crew", 1.0, 0.05, ("team", "sixes")),
    ("opposing_crew", 1.0, 0.05, ("duel", "team", "sixes")),
    ("win_trader", 1.0, 0.05, ("duel",)),
    ("win_switcher", 1.0, 0.05, ("team", "sixes")),
    ("sandbagger", 1.0, 0.05, ("duel", "team", "sixes", "brawl")),
    ("smurf", 0.5, 0.05, ("duel", "team", "sixes", "brawl")),
    ("smurf", 1.0, 0.05, ("duel", "team")),
    ("alt_splitter", 1.0, 0.05, ("duel", "team", "brawl")),
    ("rage_quitter", 1.0, 0.05, ("duel", "team", "sixes", "brawl")),
    ("queue_dodger", 1.0, 0.05, ("duel", "team", "brawl")),
    ("stat_padder", 1.0, 0.05, ("duel", "team", "sixes", "brawl")),
    *((MIXTURE, 1.0, share, ("team",)) for share in (0.01, 0.05, 0.1)),
    *((TRADES, 1.0, share, ("duel",)) for share in (0.01, 0.05, 0.1)),
)
HONEST: dict[str, dict[str, float | str]] = {
    "as usual": {},
    "a quarter of the matches": {"matches": 0.25},
    "newcomers learn a lot": {"learning": 2.0, "newcomers": 0.4},
    "players stay away on most days": {"days_off": 0.6},
    "most players have friends": {"parties": 0.6},
    "skill drifts fast": {"drift": 0.5},
    "policy quick": {"policy": "quick"},
}


def evenmatch(*arguments: str) -> dict[str, Any]:
    """The JSON document that a command prints."""
    command = [sys.executable, "-m", "evenmatch", *arguments, "--json"]
    answer = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    document: dict[str, Any] = json.loads(answer.stdout)
    return document


def table(heads: Sequence[str], rows: Rows) -> str:
    """A table in Markdown; all columns but the first are numbers."""
    lines = [heads, ["---", *("---:" for _ in heads[1:])], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def signed(value: float, digits: int = 1) -> str:
    """A number with its sign, with a real minus."""
    return f"{round(value, digits) + 0.0:+.{digits}f}".replace("-", "−")


def behaviours() -> str:
    """Percentiles gained, by behaviour and system; bold beyond chance."""
    cells = evenmatch("audit", "--keep", str(KEPT))["cells"]
    systems = sorted({cell["system"] for cell in cells})
    names = list(dict.fromkeys(cell["behaviour"] for cell in cells))
    found = {(cell["behaviour"], cell["system"]): cell for cell in cells}

    def shown(behaviour: str, system: str) -> str:
        cell = found.get((behaviour, system))
        if cell is None:
            return "–"
        gain = cell["percentile"]
        text = signed(gain["mean"])
        return f"**{text}**" if gain["low"] > 0 or gain["high"] < 0 else text

    rows = [[name.replace("_", " "), *(shown(name, system) for system in systems)] for name in names]
    costs = [
        [
            name.replace("_", " "),
            *(
                signed(sum(found[name, s][who]["mean"] for s in systems if (name, s) in found) / len(systems), 0)
                for who in ("mates", "rivals")
            ),
        ]
        for name in names
    ]
    return (
        table(["behaviour", *systems], rows)
        + "\n\nWhat a match with such a player changes for honest players, mean over all systems, in thousandths of "
        "the standard deviation of all ratings:\n\n" + table(["behaviour", "team-mates", "rivals"], costs)
    )


def invariants() -> str:
    """Every promise under every system."""
    findings = evenmatch("audit", "invariants")["invariants"]
    promises = list(dict.fromkeys(finding["promise"] for finding in findings))
    systems = list(dict.fromkeys(finding["system"] for finding in findings))
    outcome = {(finding["promise"], finding["system"]): finding["outcome"] for finding in findings}
    short = {"holds": "yes", "broken": "**no**", "not applicable": "–"}
    rows = [[system, *(short[outcome[promise, system]] for promise in promises)] for system in systems]
    broken = [f"- {f['system']}: {f['sentence']}" for f in findings if f["outcome"] == "broken"]
    return table(["system", *promises], rows) + "\n\nThe smallest counterexamples:\n\n" + "\n".join(broken)


def newcomers() -> str:
    """Matches until newcomers are found."""
    games = ("duel", "team", "squad", "arena")
    found = evenmatch("audit", "health")["newcomers"]

    def shown(system: str, game: str) -> str:
        one = found[system].get(game)
        if one is None:
            return "–"
        return str(one["found"]) if one["found"] is not None else f"over {len(one['shortfall'])}"

    rows = [[system, *(shown(system, game) for game in games)] for system in found]
    rows.append(["TrueSkill, by Microsoft", "12", "46", "91", "3"])
    return table(["system", "duels", "4v4", "8v8", "free-for-alls of 16"], rows)


def policies() -> str:
    """Who is still there after a month."""
    blocks = []
    for present in ("0.5", "0.1"):
        found = evenmatch("audit", "policies", "--system", "elo", "--players", "600", "--present", present)["policies"]
        rows = [
            [
                one["policy"],
                f"{one['kept']['mean']:.0%} ({one['kept']['low']:.0%} to {one['kept']['high']:.0%})",
                f"{one['by_skill'][0]:.0%}",
                f"{one['by_skill'][-1]:.0%}",
                f"{one['wait']:.0f} s",
                f"{one['unmatched']:.0%}",
            ]
            for one in found
        ]
        heads = ["policy", "still there", "weakest fifth", "strongest fifth", "wait", "found no match"]
        blocks.append(f"{float(present) * 600:.0f} of 600 players present at a time:\n\n" + table(heads, rows))
    return "\n\n".join(blocks)


def cures() -> str:
    """What each change leaves of an exploit, and what it costs; then the limits of wager's modifiers."""
    heads = ["system", "change", "gained before", "gained after", "closes it", "best", "log loss", "wait", "no match"]
    blocks = []
    for title, options in CURED.items():
        found = evenmatch("audit", "cures", *shlex.split(options), "--keep", str(KEPT))["cures"]
        before = {one["contestant"].split()[0]: one["gain"] for one in found if one["changed"] == "nothing"}
        rows = [
            [
                system := one["contestant"].split()[0],
                one["changed"],
                gained(before[system]),
                gained(one["gain"]),
                "yes" if one["closes"] else "–",
                "yes" if one["is_best"] else "–",
                signed(one["log_loss"], 4),
                f"{signed(one['wait'], 0)} s",
                f"{signed(100 * one['unmatched'], 0)}%",
            ]
            for one in sorted(found, key=lambda one: one["contestant"].split()[0])
            if one["changed"] != "nothing"
        ]
        blocks.append(f"**{title}.** `evenmatch audit cures {options}`\n\n" + table(heads, rows))
    return "\n\n".join([*blocks, upsets()])


def gained(gain: dict[str, float]) -> str:
    """A gain in percentiles with its interval."""
    return f"{signed(gain['mean'])} ({signed(gain['low'], 0)} to {signed(gain['high'], 0)})"


def upsets() -> str:
    """What taking a top player's rank is worth by the limit of wager's modifiers."""
    found = evenmatch("audit", "cures", *shlex.split(UPSETS), "--keep", str(KEPT))["cures"]
    limits = {one["changed"].rpartition("=")[2]: one for one in found}
    rows = []
    for name in sorted(limits, key=lambda name: float(name) if name != "nothing" else math.inf):
        one, limit = limits[name], math.inf if name == "nothing" else float(name)
        rows.append(
            [
                "none" if name == "nothing" else f"{limit:g}",
                gained(one["gain"]),
                signed(one["rivals"], 0),
                f"{min(limit, 19.0):.2f}",
                signed(one["log_loss"], 4),
            ]
        )
    heads = [
        "`modifier_limit`",
        "friends gain",
        "victims, per match and in thousandths of a standard deviation",
        "one loss at rank 20 costs",
        "log loss",
    ]
    return f"**Taking a rank by an upset.** `evenmatch audit cures {UPSETS}`\n\n" + table(heads, rows)


def season(
    game: str, seed: int, names: str = "", dose: float = 1.0, **changes: float | str
) -> tuple[SeasonRecord, Table]:
    """A season with culprits of these behaviours, and its table of scores; `matches` of the changes is a factor."""
    matches = round(MATCHES[game] * float(changes.get("matches", 1.0)))
    settings = replace(SeasonSettings(game=game, seed=seed, players=240), **{**changes, "matches": matches})  # type: ignore[arg-type]  # as declared
    chosen = [behaviour.find(name)(dose) for name in names.split(",") if name]
    record = simulate_season(settings, rules("elo"), chosen)
    return record, table_of(record.history, record.expected)


@cache
def compared(game: str, matches: float = 1.0) -> HonestScores:
    """The honest scores that a ladder of this game would be compared with."""
    return honest_scores_like(season(game, UNSEEN[0], matches=matches)[1], rules("elo"))


def detected(names: str, dose: float, share: float, game: str) -> list[str]:
    """A row of the table: what was found of these culprits, and what chance would find."""
    listed = hits = culprits = found = accounts = theirs = 0
    for seed in UNSEEN:
        record, table = season(game, seed, names, dose, culprits=share)
        marked = {one.account for one in find_suspects(table, compared(game))}
        guilty = set(np.flatnonzero((record.crew[: len(table.played)] >= 0) & judged(table)).tolist())
        listed, hits = listed + len(marked), hits + len(marked & guilty)
        culprits += len({int(record.person[account]) for account in guilty})
        found += len({int(record.person[account]) for account in marked & guilty})
        accounts, theirs = accounts + int(judged(table).sum()), theirs + len(guilty)
    words = f"{len(names.split(','))} kinds" if "," in names else names.replace("_", " ")
    words += ", half of the time" if dose < 1.0 else ""
    precision = f"{hits / listed:.0%}" if listed else "–"
    return [words, game, f"{share:.0%}", str(listed), precision, f"{theirs / accounts:.0%}", f"{found / culprits:.0%}"]


def mistaken(name: str) -> list[str]:
    """A row of the table: the share of honest accounts that are listed in each game."""
    row, changes = [name], HONEST[name]
    for game in MATCHES:
        tables = [season(game, seed, "", 1.0, **changes)[1] for seed in UNSEEN]
        honest = compared(game, float(changes.get("matches", 1.0)))
        listed = sum(len({one.account for one in find_suspects(table, honest)}) for table in tables)
        accounts = sum(int(judged(table).sum()) for table in tables)
        row.append(f"{listed / accounts:.2%} ({listed} of {accounts})")
    return row


def suspects() -> str:
    """Precision and recall of the list of suspects, and its false alarms."""
    heads = ["behaviour", "game", "culprits", "listed", "precision", "by chance", "recall"]
    rows = [detected(names, dose, share, game) for names, dose, share, games in CULPRITS for game in games]
    alarms = [mistaken(name) for name in HONEST]
    return (
        f"{table(heads, rows)}\n\nHonest accounts that are listed in seasons without a culprit; at most {RATE:.1%} is "
        f"promised:\n\n{table(['season', *MATCHES], alarms)}"
    )


PARTS: dict[str, Callable[[], str]] = {
    "behaviours": behaviours,
    "invariants": invariants,
    "newcomers": newcomers,
    "policies": policies,
    "cures": cures,
    "suspects": suspects,
}


def main() -> None:
    """Write the parts that were named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], default=[], metavar="PART")
    given = parser.parse_args()
    KEPT.parent.mkdir(exist_ok=True)
    for name in given.parts or PARTS:
        print(f"writing {name}", file=sys.stderr, flush=True)
        written = PARTS[name]()
        text = PAGE.read_text("utf-8")
        begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        if begin not in text or end not in text:
            raise SystemExit(f"{PAGE.name}: expected the lines {begin} and {end}")
        before, after = text.partition(begin)[0], text.partition(end)[2]
        PAGE.write_text(f"{before}{begin}\n\n{written}\n\n{end}{after}", "utf-8")


if __name__ == "__main__":
    main()
