"""Simulated queues in plain words: who waits how long, how even the matches are, whose rules were broken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evenmatch.lab.queue_run import Run

LEAST = 20  # matched players, below which a group's waits say little
MOST_TENTHS = 7  # of ten that must have so many, before waits are compared by rank
FEW = 0.1  # share of the players: where more still wait at the end, the waits of the others say little
STUCK = 0.2  # share of those who wait at the end; of a steady queue about a twentieth has waited so long
TELLING = 0.2  # by which shares of two groups differ before it is said
SAME = 0.05  # by which shares of even matches differ at most where they tell no matchmakers apart
ALIKE = 1.25  # times: groups whose waits differ by less wait about alike
RULES = {
    "window": "with somebody outside their own filter",
    "region": "in a region where they cannot play",
    "avoid": "with somebody whom they avoid",
    "size": "in teams of another size",
    "roles": "in a role that they do not offer, or a team that lacks one",
}

Figures = Mapping[str, Any]


def verdict(runs: Sequence[Run]) -> list[str]:
    """Sentences on the first of the runs, and on all of them where rules were broken."""
    figures: list[Figures] = [run.summary() for run in runs]
    first = figures[0]
    if not first["matches"]:
        return [f"{first['name']} made no match out of {_players(first['arrived'])}.", *_waiting(first)]
    told = [
        _waits(first),
        _evenness(first, runs[0].policy.teams),
        *_alike(figures),
        *_groups(first),
        *_waiting(first),
        *_stuck(first),
        *_rules(figures),
        *_best(figures),
    ]
    scenario = runs[0].scenario
    if scenario is not None and scenario.kind == "poisson" and first["law"] and not _many_left(first):
        told.append(
            f"Wait and spread can be traded, and only more players lower both: arrivals a second × mean wait × mean "
            f"spread / 100 is {first['law']:.1f} here, and stays about that. With half the arrivals the product of "
            f"wait and spread doubles."
        )
    return told


def meanings(teams: int) -> str:
    """What the columns mean that their heads do not tell."""
    of = "" if teams == 2 else ", the strongest team against the weakest"
    return (
        f"45–55%: matches with such odds by the ratings that the matchmaker sees{of}; true: by true skill, which only "
        f"a simulation knows. Waits are of players who found a match. Players per CPU s: matched in a second of the "
        f"matchmaker's computing, ticks with nothing to match included."
    )


def seconds(value: float | None) -> str:
    """Seconds as people say them."""
    if value is None:
        return "–"
    return f"{value:,.0f} s" if value >= 9.95 else f"{value:.1f} s"


def percent(share: float | None) -> str:
    """A share, with a digit more where it is nearly all or nearly nothing; never rounded to all."""
    if share is None:
        return "–"
    if 0.99 < share < 1.0 or 0.0 < share < 0.01:
        return f"{min(max(100 * share, 0.1), 99.9):.1f}%"
    return f"{share:.0%}"


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 4th …; up to 20."""
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number, 'th') }"


def _waits(first: Figures) -> str:
    return (
        f"{first['name']}: half of the players who found a match waited {seconds(first['wait_p50'])} or less, 95 of "
        f"100 {seconds(first['wait_p95'])} or less, and nobody of them longer than {seconds(first['wait_max'])}."
    )


def _evenness(first: Figures, teams: int) -> str:
    of = "" if teams == 2 else ", the strongest team against the weakest"
    told = (
        f"95 of 100 of its matches span {first['spread_p95']:.1f} percentiles or less; "
        f"{percent(first['share_45_55'])} of them are foretold within 45 to 55%{of}"
    )
    if first["realised_45_55"] is not None:
        told += f", and {percent(first['realised_45_55'])} lie there by true skill, which nobody knows exactly"
    return told + "."


def _alike(figures: Sequence[Figures]) -> list[str]:
    """That odds do not tell matchmakers apart, where it is so."""
    made = [one for one in figures if one["matches"]]
    shares = [one["share_45_55"] for one in made]
    spreads = [one["spread_p50"] for one in made]
    if len(made) < 2 or max(shares) - min(shares) > SAME or max(spreads) <= ALIKE * min(spreads):
        return []
    return [
        f"Odds do not tell these matchmakers apart, since nearly any players of a match can be split into even teams; "
        f"the spread does: whether those who play each other are alike ({min(spreads):.1f} to {max(spreads):.1f} "
        f"percentiles in the middle one of the matches)."
    ]


def _groups(first: Figures) -> list[str]:
    told = []
    deciles = _measured(first["by_decile"])
    if len(deciles) < MOST_TENTHS:
        told.append("Too few players found a match to compare waits by rank.")
    else:
        short, long = deciles[0], deciles[-1]
        where = f"{ordinal(long['decile'])} tenth of the ranks ({_band(long)})"
        if long["wait_p95"] <= ALIKE * short["wait_p95"]:
            told.append(
                f"All ranks wait about alike: 95 of 100 wait {seconds(long['wait_p95'])} or less in the slowest, the "
                f"{where}, and {seconds(short['wait_p95'])} in the quickest."
            )
        else:
            told.append(
                f"Players in the {where} wait longest: 95 of 100 wait {seconds(long['wait_p95'])} or less, against "
                f"{seconds(short['wait_p95'])} in the {ordinal(short['decile'])}, the quickest."
            )
    sizes = _measured(first["by_party_size"])
    if len(sizes) > 1:
        told.append(
            f"By size of party, those of {sizes[-1]['size']} wait longest ({seconds(sizes[-1]['wait_p95'])} for 95 of "
            f"100) and those of {sizes[0]['size']} shortest ({seconds(sizes[0]['wait_p95'])})."
        )
    return [*told, *_regions(first["by_region"])]


def _regions(regions: Sequence[Figures]) -> list[str]:
    """Who waits longest by region, and where a large part still waits at the end."""
    told = []
    measured = _measured(regions)
    if len(measured) > 1:
        told.append(
            f"By region, players from {measured[-1]['region']} wait longest ({seconds(measured[-1]['wait_p95'])} for "
            f"95 of 100) and those from {measured[0]['region']} shortest ({seconds(measured[0]['wait_p95'])})."
        )
    never = [one["region"] for one in regions if one["players"] and not one["matched"]]
    if never:
        told.append(f"Nobody from {_listed(never, 'or')} found a match.")
    return told


def _measured(groups: Sequence[Figures]) -> list[Figures]:
    """Those with enough players to say something, the quickest first."""
    return sorted((one for one in groups if one["matched"] >= LEAST), key=lambda one: float(one["wait_p95"]))


def _band(decile: Figures) -> str:
    number = decile["decile"]
    name = {1: ", the lowest", 10: ", the highest"}.get(number, "")
    return f"percentiles {10 * (number - 1)} to {10 * number}{name}"


def _waiting(first: Figures) -> list[str]:
    told = []
    if first["unmatched"]:
        still = f"{_players(first['unmatched'])} still wait{'s' if first['unmatched'] == 1 else ''} at the end"
        told.append(f"{still}, the longest for {seconds(first['longest_unmatched'])}.")
        if _many_left(first):
            told.append(
                f"That is {percent(first['unmatched'] / first['arrived'])} of all joins: the run is short for such "
                f"waits, or there are too few players for these teams and filters."
            )
    gone = [
        f"{_players(first[name])} {what}"
        for name, what in (
            ("cancelled", "gave up waiting"),
            ("expired", "were given up by the policy"),
            ("overtaken", "queued again while they still waited"),
            ("passed_over", "were passed over, since they still waited or played"),
        )
        if first[name]
    ]
    return [*told, *([f"{', '.join(gone)}."] if gone else [])]


def _stuck(first: Figures) -> list[str]:
    """A warning where many wait longer than those who found a match, and so are in no figure of waits."""
    left = first["left_waiting"]
    longer = first["wait_so_far_p95"] > ALIKE * first["wait_p95"]
    if not left["players"] or not (longer or left["players"] > STUCK * first["unmatched"]):
        return []
    told = (
        f"Mind that the waits above leave them out: {left['players']:,} of the {first['unmatched']:,} who still wait "
        f"have waited longer than {seconds(left['after'])} already. With all who wait counted in, the wait of 95 of "
        f"100 is at least {seconds(first['wait_so_far_p95'])}."
    )
    kinds = [
        f"{percent(share)} are {kind} ({percent(of_all)} of all joins)"
        for kind, share, of_all in left["common"]
        if share - of_all > TELLING
    ]
    return [told, *([f"Of those {left['players']:,}, {_listed(kinds[:2])}."] if kinds else [])]


def _many_left(first: Figures) -> bool:
    return bool(first["unmatched"] > FEW * first["arrived"])


def _players(count: int) -> str:
    return f"{count:,} player{'' if count == 1 else 's'}"


def _rules(figures: Sequence[Figures]) -> list[str]:
    """What violations there were, and what they mean."""
    breaking = [one for one in figures if one["violations"]]
    told = []
    if keeping := [one["name"] for one in figures if not one["violations"] and one["matches"]]:
        told.append(f"No rule was broken by {_listed(keeping)}: nobody met a player outside their own filter.")
    if breaking:
        kinds = [meant for rule, meant in RULES.items() if any(one[f"violations_{rule}"] for one in breaking)]
        shares = [
            f"{one['name']} ({percent(one['violations'] / one['matched'])}{'' if at else ' of its players'})"
            for at, one in enumerate(breaking)
        ]
        told.append(f"Rules were broken by {_listed(shares)}: these were put {_listed(kinds, 'or')}.")
    return told


def _best(figures: Sequence[Figures]) -> list[str]:
    """Of several that keep the rules: which waits least, and which has the closest matches."""
    keeping = [one for one in figures if not one["violations"] and one["matches"]]
    if len(keeping) < 2:
        return []
    quick = min(keeping, key=lambda one: float(one["wait_p95"]))
    close = min(keeping, key=lambda one: float(one["spread_p95"]))
    told = (
        f"Of those that keep all rules {quick['name']} has the shortest waits ({seconds(quick['wait_p95'])} for 95 of"
    )
    if quick is close:
        return [f"{told} 100) and the closest matches ({quick['spread_p95']:.1f} percentiles for 95 of 100)."]
    return [
        f"{told} 100) and {close['name']} the closest matches ({close['spread_p95']:.1f} percentiles for 95 of 100, "
        f"with waits of {seconds(close['wait_p95'])})."
    ]


def _listed(names: Sequence[str], last: str = "and") -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {last} {names[-1]}"
