"""Findings on simulated queues as sentences: waits, evenness of the matches, broken rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evenmatch.lab.queue.run_metrics import summary_of
from evenmatch.lab.queue.runs import Run
from evenmatch.lab.queue.scenario import Scenario

LEAST = 20  # fewest matched players of a group whose waits are compared
MOST_TENTHS = 7  # fewest tenths of the ranks with LEAST players for a comparison by rank
FEW = 0.1  # share of the players: if more still wait at the end, a warning is given
STUCK = 0.2  # share of the players waiting at the end; in a steady queue about 0.05 have waited that long
TELLING = 0.2  # smallest difference of shares that is mentioned
SAME = 0.05  # largest difference of the shares of even matches that counts as equal
ALIKE = 1.25  # waits whose ratio is smaller count as similar
LISTED_AT_MOST = 6  # regions, or values of an attribute, listed by name
RULES = {
    "window": "with a player outside their own filter",
    "region": "in a region where they cannot play",
    "avoid": "with a player they avoid",
    "attributes": "without a value of an attribute, or a map, that all accept",
    "size": "in teams of another size",
    "roles": "in a role that they do not offer, or a team that lacks one",
}

Figures = Mapping[str, Any]


def verdict(runs: Sequence[Run]) -> list[str]:
    """Findings on the first run, and on broken rules in all runs, as sentences."""
    figures: list[Figures] = [summary_of(run) for run in runs]
    first = figures[0]
    if not first["matches"]:
        return [f"{first['name']} made no match out of {_players(first['arrived'])}.", *_waiting(first)]
    sentences = [
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
        sentences.append(
            f"A shorter wait means a wider spread, and only more players lower both: arrivals per second × mean wait × "
            f"mean spread / 100 is about constant, here {first['law']:.1f}. With half the arrivals the product of "
            f"wait and spread doubles."
        )
    return sentences


def meanings(teams: int) -> str:
    """Explanation of the table columns below the table."""
    of = "" if teams == 2 else ", the strongest team against the weakest"
    return (
        f"45–55%: share of matches with such odds by the known ratings{of}; true: by true skill, which only a "
        f"simulation knows. law: arrivals per second × mean wait × mean spread / 100; the lower, the shorter the waits "
        f"or the closer the matches. Waits are those of players who found a match. Players per CPU s: players matched "
        f"per second of the matchmaker's computing time, including ticks with nothing to match."
    )


def seconds(value: float | None) -> str:
    """Format seconds."""
    if value is None:
        return "–"
    return f"{value:,.0f} s" if value >= 9.95 else f"{value:.1f} s"


def percent(share: float | None) -> str:
    """Format a share in percent, with one decimal near 0 and 100 %; only 1.0 gives 100 %."""
    if share is None:
        return "–"
    if 0.99 < share < 1.0 or 0.0 < share < 0.01:
        return f"{min(max(100 * share, 0.1), 99.9):.1f}%"
    return f"{share:.0%}"


def ordinal(number: int) -> str:
    """Format an ordinal: 1st, 2nd, 3rd, 4th …; 1 to 20."""
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number, 'th') }"


def _waits(first: Figures) -> str:
    return (
        f"{first['name']}: half of the players who found a match waited {seconds(first['wait_p50'])} or less, 95 of "
        f"100 {seconds(first['wait_p95'])} or less, and none longer than {seconds(first['wait_max'])}."
    )


def _evenness(first: Figures, teams: int) -> str:
    of = "" if teams == 2 else ", the strongest team against the weakest"
    sentence = (
        f"95 of 100 of its matches span {first['spread_p95']:.1f} percentiles or less; "
        f"{percent(first['share_45_55'])} of them have predicted odds of 45 to 55%{of}"
    )
    if first["realised_45_55"] is not None:
        sentence += f", and {percent(first['realised_45_55'])} by true skill, which only the simulation knows"
    return sentence + "."


def _alike(figures: Sequence[Figures]) -> list[str]:
    """Finding that the odds of all runs are similar, if so."""
    with_matches = [summary for summary in figures if summary["matches"]]
    shares = [summary["share_45_55"] for summary in with_matches]
    spreads = [summary["spread_p50"] for summary in with_matches]
    if len(with_matches) < 2 or max(shares) - min(shares) > SAME or max(spreads) <= ALIKE * min(spreads):
        return []
    return [
        f"These matchmakers have similar odds, since almost any players can be split into even teams. They differ in "
        f"the spread, which shows how similar the players of a match are: the median is {min(spreads):.1f} to "
        f"{max(spreads):.1f} percentiles."
    ]


def _groups(first: Figures) -> list[str]:
    sentences = []
    deciles = _measured(first["by_decile"])
    if len(deciles) < MOST_TENTHS:
        sentences.append("Too few players found a match to compare waits by rank.")
    else:
        short, long = deciles[0], deciles[-1]
        where = f"{ordinal(long['decile'])} tenth of the ranks ({_band(long)})"
        if long["wait_p95"] <= ALIKE * short["wait_p95"]:
            sentences.append(
                f"Waits are similar in all ranks: 95 of 100 wait {seconds(long['wait_p95'])} or less in the slowest, "
                f"the {where}, and {seconds(short['wait_p95'])} in the quickest."
            )
        else:
            sentences.append(
                f"Players in the {where} wait longest: 95 of 100 wait {seconds(long['wait_p95'])} or less, against "
                f"{seconds(short['wait_p95'])} in the {ordinal(short['decile'])}, the quickest."
            )
    sizes = _measured(first["by_party_size"])
    if len(sizes) > 1:
        sentences.append(
            f"By size of party, those of {sizes[-1]['size']} wait longest ({seconds(sizes[-1]['wait_p95'])} for 95 of "
            f"100) and those of {sizes[0]['size']} shortest ({seconds(sizes[0]['wait_p95'])})."
        )
    return [*sentences, *_regions(first["by_region"])]


def _regions(regions: Sequence[Figures]) -> list[str]:
    """Longest and shortest waits by region, and regions without a match."""
    sentences = []
    measured = _measured(regions)
    if len(measured) > 1:
        sentences.append(
            f"By region, players from {measured[-1]['region']} wait longest ({seconds(measured[-1]['wait_p95'])} for "
            f"95 of 100) and those from {measured[0]['region']} shortest ({seconds(measured[0]['wait_p95'])})."
        )
    never = [region["region"] for region in regions if region["players"] and not region["matched"]]
    if never:
        sentences.append(f"No player from {_listed(never, 'or')} found a match.")
    return sentences


def _measured(groups: Sequence[Figures]) -> list[Figures]:
    """Groups with enough matched players, the quickest first."""
    return sorted((group for group in groups if group["matched"] >= LEAST), key=lambda group: float(group["wait_p95"]))


def _band(decile: Figures) -> str:
    number = decile["decile"]
    name = {1: ", the lowest", 10: ", the highest"}.get(number, "")
    return f"percentiles {10 * (number - 1)} to {10 * number}{name}"


def _waiting(first: Figures) -> list[str]:
    sentences = []
    if first["unmatched"]:
        still = f"{_players(first['unmatched'])} {'is' if first['unmatched'] == 1 else 'are'} still waiting at the end"
        sentences.append(f"{still}, the longest for {seconds(first['longest_unmatched'])}.")
        if _many_left(first):
            sentences.append(
                f"That is {percent(first['unmatched'] / first['arrived'])} of all joins: the run is too short for "
                f"such waits, or there are too few players for these teams and filters."
            )
    left = [
        f"{_players(first[name])} {what}"
        for name, what in (
            ("cancelled", "gave up waiting"),
            ("expired", "were removed after the longest wait of the policy"),
            ("overtaken", "queued again while they still waited"),
            ("passed_over", "were skipped because they still waited or played"),
        )
        if first[name]
    ]
    return [*sentences, *([f"{', '.join(left)}."] if left else [])]


def _stuck(first: Figures) -> list[str]:
    """Warning if many players still wait, longer than matched ones, and so are missing from the waits above."""
    left = first["left_waiting"]
    longer = first["wait_so_far_p95"] > ALIKE * first["wait_p95"]
    if not left["players"] or not (longer or left["players"] > STUCK * first["unmatched"]):
        return []
    warning = (
        f"The waits above do not include them: {left['players']:,} of the {first['unmatched']:,} players still waiting "
        f"have waited longer than {seconds(left['after'])} already. With all waiting players included, the wait of "
        f"95 of 100 is at least {seconds(first['wait_so_far_p95'])}."
    )
    kinds = [
        f"{percent(share)} are {kind} ({percent(of_all)} of all joins)"
        for kind, share, of_all in left["common"]
        if share - of_all > TELLING
    ]
    return [warning, *([f"Of those {left['players']:,}, {_listed(kinds[:2])}."] if kinds else [])]


def _many_left(first: Figures) -> bool:
    return bool(first["unmatched"] > FEW * first["arrived"])


def _players(count: int) -> str:
    return f"{count:,} player{'' if count == 1 else 's'}"


def _rules(figures: Sequence[Figures]) -> list[str]:
    """Runs without and with broken rules, and which rules were broken."""
    breaking = [summary for summary in figures if summary["violations"]]
    sentences = []
    if keeping := [summary["name"] for summary in figures if not summary["violations"] and summary["matches"]]:
        sentences.append(f"No rule was broken by {_listed(keeping)}: nobody met a player outside their own filter.")
    if breaking:
        kinds = [meant for rule, meant in RULES.items() if any(summary[f"violations_{rule}"] for summary in breaking)]
        shares = [
            f"{run['name']} ({percent(run['violations'] / run['matched'])}{'' if index else ' of its players'})"
            for index, run in enumerate(breaking)
        ]
        sentences.append(f"Rules were broken by {_listed(shares)}: these were put {_listed(kinds, 'or')}.")
    return sentences


def _best(figures: Sequence[Figures]) -> list[str]:
    """Run with the shortest waits and run with the closest matches, of those that keep the rules."""
    keeping = [summary for summary in figures if not summary["violations"] and summary["matches"]]
    if len(keeping) < 2:
        return []
    quick = min(keeping, key=lambda summary: float(summary["wait_p95"]))
    close = min(keeping, key=lambda summary: float(summary["spread_p95"]))
    sentence = (
        f"Of those that keep all rules {quick['name']} has the shortest waits ({seconds(quick['wait_p95'])} for 95 of"
    )
    if quick is close:
        return [f"{sentence} 100) and the closest matches ({quick['spread_p95']:.1f} percentiles for 95 of 100)."]
    return [
        f"{sentence} 100) and {close['name']} the closest matches ({close['spread_p95']:.1f} percentiles for 95 of "
        f"100, with waits of {seconds(close['wait_p95'])})."
    ]


def _listed(names: Sequence[str], last: str = "and") -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {last} {names[-1]}"


def habits(scenario: Scenario) -> list[tuple[str, str]]:
    """Labels and values of options that differ from the default scenario."""
    listed = []
    if scenario.players is not None:
        listed.append(("players of the ladder", f"{scenario.players:,}"))
    if scenario.party_size > 1:
        listed.append(
            ("parties", _mix({f"of {size}": share for size, share in enumerate(scenario.parties, 1) if share}))
        )
    if scenario.regions:
        listed.append(("regions", _mix(scenario.regions)))
    listed += [(name, _mix(shares)) for name, shares in scenario.attributes.items()]
    if scenario.vetoes:
        listed.append(("veto", ", ".join(f"{name} {percent(share)}" for name, share in scenario.vetoes.items())))
    if scenario.patience is not None:
        listed.append(("patience", seconds(scenario.patience)))
    if scenario.return_share:
        listed.append(("return after a match", percent(scenario.return_share)))
    if scenario.share_newcomers:
        listed.append(("newcomers", percent(scenario.share_newcomers)))
    if scenario.share_avoiding:
        listed.append(("avoid others", percent(scenario.share_avoiding)))
    return listed


def _mix(shares: Mapping[str, float]) -> str:
    total = sum(shares.values())
    names = [f"{name} {percent(share / total)}" for name, share in shares.items()]
    more = [f"{len(names) - LISTED_AT_MOST} more"] if len(names) > LISTED_AT_MOST else []
    return ", ".join(names[:LISTED_AT_MOST] + more)
