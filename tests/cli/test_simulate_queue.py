"""evenmatch simulate-queue and replay-queue: figures, one document, bad values, journals."""

import json
import re
import tomllib

import pytest

from evenmatch import __version__
from evenmatch.cli import simulation
from evenmatch.lab.queue.run_metrics import summary_of
from evenmatch.lab.queue.scenario import REGION_MIXES, Scenario
from evenmatch.lab.queue.simulation import simulate
from evenmatch.matchmaking.propose import propose
from evenmatch.policy import presets

FIRST = [
    *("name", "matches", "unmatched", "wait_p50", "wait_p95", "wait_max", "spread_p50", "spread_p95"),
    *("share_45_55", "violations", "players_per_cpu_second"),
]
SPEED = {"players_per_cpu_second", "cpu_seconds"}
SHORT = ("--minutes", "0.8", "--team-size", "2")


def slow_free(found):
    """The figures that the speed of the machine has no part in."""
    return [{name: value for name, value in one.items() if name not in SPEED} for one in found]


@pytest.fixture(autouse=True)
def somewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_the_document_is_one_list_with_the_told_keys_first(run):
    """And in a pipe nothing is said of progress."""
    ended = run("simulate-queue", *SHORT, "--json")
    assert (ended.code, ended.err) == (0, "")
    (found,) = json.loads(ended.out)
    assert list(found)[:11] == FIRST
    assert found["name"] == "balanced"
    assert found["violations"] == 0
    assert 0 < found["wait_p50"] <= found["wait_p95"] <= found["wait_max"] <= 48


def test_the_default_scenario_is_the_one_of_the_issue(run):
    (found,) = json.loads(run("simulate-queue", "--minutes", "1", "--json").out)
    simulated = summary_of(simulate(Scenario(minutes=1), propose, presets()["balanced"], name="balanced"))
    assert slow_free([found]) == slow_free([simulated])


def test_every_option_reaches_the_scenario(run):
    line = "--arrivals 3 --kind daily --period 60 --patience 40 --returns 0.5 --players 900 --strict 0.5 --seed 3"
    more = "--parties 2,1 --regions eu=3,us=1 --rating-error 10 --newcomers 0.2 --avoiding 0.1 --journal j.jsonl"
    assert run("simulate-queue", *SHORT, *line.split(), *more.split()).code == 0
    with open("j.jsonl") as file:
        header = json.loads(file.readline())
    assert header["policy"]["team_size"] == 2
    told = {
        **{"arrivals": 3, "minutes": 0.8, "seed": 3, "kind": "daily", "period": 60, "patience": 40, "players": 900},
        **{"return_share": 0.5, "share_strict": 0.5, "parties": [2 / 3, 1 / 3], "regions": {"eu": 3, "us": 1}},
        **{"rating_error": 10, "share_newcomers": 0.2, "share_avoiding": 0.1},
    }
    unchanged = Scenario().to_data() | told
    assert header["scenario"] == unchanged


def test_options_come_before_the_scenario_file(run, tmp_path):
    (tmp_path / "s.toml").write_text('minutes = 0.8\nseed = 4\nparties = "none"\nstrict_within = 9\n')
    from_file = run("simulate-queue", "--team-size", 2, "--json", "--scenario", "s.toml", "--seed", 7)
    expected = simulate(
        Scenario(minutes=0.8, seed=7, strict_within=9),
        propose,
        presets()["balanced"].__class__(team_size=2),
        name="balanced",
    )
    assert slow_free(json.loads(from_file.out)) == slow_free([summary_of(expected)])


@pytest.mark.parametrize(
    "line", ["", "--regions four --parties 3,1 --patience 80 --seed 9 --kind bursts --newcomers 0.1"]
)
def test_a_printed_scenario_is_a_file_that_stands_for_it(run, tmp_path, line):
    ended = run("simulate-queue", *line.split(), "--print-scenario")
    assert (ended.code, ended.err) == (0, "")
    (tmp_path / "printed.toml").write_text(ended.out)
    again = run("simulate-queue", "--scenario", "printed.toml", "--print-scenario")
    assert again.out == ended.out
    found = Scenario.from_data(tomllib.loads(ended.out))
    if line:
        assert (found.regions, found.parties) == (REGION_MIXES["four"], (0.75, 0.25))
        assert (found.patience, found.seed, found.kind, found.share_newcomers) == (80, 9, "bursts", 0.1)
    else:
        assert found == Scenario()


def test_a_terminal_that_is_too_narrow_gets_several_tables_with_the_name_in_each():
    row = ["balanced", "1,234.5", "60.2", "2,841.9", "14.0", "94.5", "100%", "92%", "11.2", "5,952", "1,281", "24,087"]
    for width in (60, 80, 100, 130):
        parts = simulation._parts([row], width)
        assert [at for part in parts for at in part if at] == list(range(1, 12))
        for part in parts:
            assert part[0] == 0
            drawn = sum(max(len(row[at]), len(simulation.HEADS[at])) + 3 for at in part)
            assert drawn <= width
    assert [len(simulation._parts([row], width)) for width in (60, 80, 130, None)] == [3, 2, 1, 1]


def test_a_journal_can_be_read_by_whoever_may_read_a_new_file(run, tmp_path):
    (tmp_path / "plain").touch()
    assert run("simulate-queue", *SHORT, "--journal", "j.jsonl").code == 0
    assert (tmp_path / "j.jsonl").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_named_parties_are_cut_to_the_smallest_team(run):
    ended = run("simulate-queue", *SHORT, "--parties", "many", "--journal", "j.jsonl")
    assert ended.code == 0
    assert "--parties many: parties of more than 2 do not fit into a team and are left out" in ended.err
    assert "parties: of 1 58%, of 2 42%." in ended.out
    with open("j.jsonl") as file:
        header = json.loads(file.readline())
    assert header["scenario"]["parties"] == pytest.approx([0.35 / 0.6, 0.25 / 0.6])


def test_the_table_is_aligned_and_followed_by_what_it_means(run):
    told = ("--minutes", "1.5", "--policy", "balanced", "-p", "quick")
    ended = run("simulate-queue", *told)
    assert ended.code == 0
    lines = ended.out.splitlines()
    assert lines[0] == "6v6, 5 players a second for 1.5 minutes, seed 1 (waits in seconds, spreads in percentiles)"
    end = lines[1].index("wait p50") + len("wait p50")
    rows = lines[2 : lines.index("")]
    assert [row.split()[0] for row in rows] == ["balanced", "quick"]
    assert all(row[end - 1].isdigit() and row[end] == " " for row in rows)
    law = next(iter(re.finditer(r"\blaw\b", lines[1]))).end()
    assert all(re.fullmatch(r"\d+\.\d", row[:law].split()[-1]) and row[law] == " " for row in rows)
    said = " ".join(lines[len(rows) + 2 :])
    assert "law: arrivals per second × mean wait × mean spread / 100" in said
    assert lines[len(rows) + 3].startswith("45–55%: share of matches with such odds by the known ratings")
    assert "true: by true skill" in said
    assert "balanced: half of the players who found a match waited" in said
    assert "tenth of the ranks" in said
    assert "No rule was broken by balanced and quick: nobody met a player outside their own filter" in said
    assert ended.err == f"to repeat it with evenmatch {__version__}: {command_of(*told)} --seed 1\n"


def command_of(*arguments):
    return " ".join(["evenmatch", "simulate-queue", *arguments])


# What is told, and what the error must name
WRONG = [
    ("--policy balanecd", "unknown policy 'balanecd' (did you mean 'balanced'?)"),
    ("--policy nosuch.toml", "nosuch.toml: No such file"),
    ("--team-size 0", "--team-size 0: team_size=0: expected a whole number from 1 to 50"),
    ("--team-size many", "many"),
    ("--teams 1", "--teams 1: teams=1: expected a whole number from 2"),
    ("--teams 200 --team-size 6", "200"),
    ("--policy ", "unknown policy ''; known: balanced, quick, fair, a .toml or .json file"),
    ("--policy nosuch.yaml", "nosuch.yaml: suffix '.yaml'; expected a policy in a .toml or .json file"),
    ("--arrivals 0", "--arrivals 0: expected a number from 0.0001 to 100,000\n"),
    ("--arrivals nan", "--arrivals nan: expected"),
    ("--minutes -1", "--minutes -1: expected"),
    ("--minutes 0.01", "--minutes 0.01: expected a number from 0.02"),
    ("--minutes 0.02 --scenario slow.toml", "--minutes 0.02: expected at least one tick of 3 seconds"),
    ("--period 60", "--period 60: only allowed with --kind daily"),
    ("--players 0", "--players 0: expected a whole number from 2 to 20,000,000, or none\n"),
    ("--kind recorded", "--kind recorded: expected poisson, daily or bursts; recorded arrivals are"),
    ("--seed -1", "--seed -1: expected a whole number from 0"),
    ("--seed 1.5", "1.5"),
    ("--strict 1.5", "--strict 1.5: expected a number from 0 to 1"),
    ("--kind sometimes", "--kind sometimes: expected poisson, daily, bursts or recorded\n"),
    ("--parties often", "unknown mix of parties 'often'"),
    ("--parties 1,x2", "--parties 1,x2: expected none, some, many, or weights"),
    ("--parties 0,0", "--parties 0,0: expected"),
    ("--parties 1,1,1 --team-size 2", "parties of up to 3 do not fit into teams of 2"),
    ("--regions eu=much", "--regions eu=much: expected none, four"),
    ("--regions eu=-1", "regions has 'eu': -1.0; expected"),
    ("--regions fuor", "unknown mix of regions 'fuor' (did you mean 'four'?)"),
    ("--patience 0", "--patience 0: expected a number from 0.001 to 1,000,000,000, or none\n"),
    ("--report page.pdf", "page.pdf: the report is a web page; expected a name ending in .html"),
    ("--report nowhere/page.html", "nowhere/page.html: cannot be written"),
    ("--journal page.html", "page.html: suffix '.html'; expected a journal in a .jsonl file"),
    ("--scenario s.yaml", "s.yaml: suffix '.yaml'"),
    ("--scenario nosuch.toml", "nosuch.toml: No such file"),
]


@pytest.mark.parametrize(("line", "said"), WRONG)
def test_a_wrong_value_is_told_with_its_option(run, tmp_path, line, said):
    """Where what is told ends a line, nothing is told behind it."""
    (tmp_path / "slow.toml").write_text("tick = 3")
    ended = run("simulate-queue", *line.split(" "))
    assert (ended.code, ended.out) == (2, "")
    assert said in " ".join(ended.err.split()) + "\n"


@pytest.mark.parametrize(
    ("name", "text", "option"),
    [
        ("p.toml", "max_odds = 2", "--policy"),
        ("s.toml", "arrivals = -3", "--scenario"),
        ("s.json", '{"arivals": 3}', "--scenario"),
        ("s.toml", "team_size = 3", "--scenario"),
    ],
)
def test_wrong_contents_of_a_file_end_with_one_and_name_it(run, tmp_path, name, text, option):
    (tmp_path / name).write_text(text)
    ended = run("simulate-queue", option, name)
    assert (ended.code, ended.out) == (1, "")
    assert f"error: {name}: " in ended.err
    assert text.split()[0].strip('{":') in ended.err


def test_a_report_may_not_take_the_place_of_a_file_that_is_read(run, tmp_path):
    (tmp_path / "p.html").write_text("")
    ended = run("simulate-queue", "--policy", "p.html", "--report", "p.html")
    assert (ended.code, (tmp_path / "p.html").read_text()) == (2, "")


def test_a_hostile_name_of_a_policy_file_is_shown_harmlessly(run, tmp_path):
    name = "<img src=x onerror=alert(1)>\x1b[2J\u202e"
    (tmp_path / f"{name}.toml").write_text("team_size = 2")
    ended = run("simulate-queue", "--minutes", "0.8", "--policy", f"{name}.toml", "--report", "page.html")
    assert ended.code == 0
    assert all(line.isprintable() for line in (ended.out + ended.err).splitlines())
    page = (tmp_path / "page.html").read_text()
    assert "<img" not in page.split('id="figures"')[0]
    assert "&lt;img src=x" in page
    assert not {"\x1b", "\u202e"} & set(page.split('id="figures"')[0])
    assert (
        json.loads(run("simulate-queue", *SHORT, "--policy", f"{name}.toml", "--json").out)[0]["name"] == f"{name}.toml"
    )


def test_a_run_that_fails_leaves_the_old_journal(run, tmp_path, monkeypatch):
    (tmp_path / "j.jsonl").write_text("old")

    def fail(*_, **__):
        raise MemoryError

    monkeypatch.setattr("evenmatch.lab.queue.simulation.simulate", fail)
    with pytest.raises(MemoryError):
        run("simulate-queue", *SHORT, "--journal", "j.jsonl")
    assert (tmp_path / "j.jsonl").read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_queue_without_a_match_is_told_without_figures(run):
    ended = run("simulate-queue", "--minutes", "0.1", "--arrivals", "0.5")
    assert ended.code == 0
    assert "balanced made no match out of" in ended.out
    (found,) = json.loads(run("simulate-queue", "--minutes", "0.1", "--arrivals", "0.5", "--json").out)
    assert (found["matches"], found["wait_p50"], found["share_45_55"]) == (0, None, None)


@pytest.fixture(scope="module")
def recorded_journal(tmp_path_factory):
    """A journal of a short simulated queue, and its figures."""
    path = tmp_path_factory.mktemp("recorded") / "queue.jsonl"
    policy = presets()["quick"].__class__.from_data({"preset": "quick", "team_size": 2})
    scenario = Scenario(minutes=1, parties=(0.6, 0.4), patience=60.0)
    with path.open("w") as file:
        found = simulate(scenario, propose, policy, name="quick", journal=file)
    return path, summary_of(found)


def test_a_replay_under_its_own_policy_says_that_nothing_differs(run, recorded_journal):
    path, figures = recorded_journal
    ended = run("replay-queue", path, "--policy", "fair")
    assert ended.code == 0
    assert "Under its own policy all decisions are the same, in 60 ticks." in ended.out
    found = json.loads(run("replay-queue", path, "--policy", "fair", "--json").out)
    assert [one["name"] for one in found] == ["quick", "fair"]
    assert slow_free(found[:1]) == slow_free([figures | {"first_differing_tick": None}])
    assert list(found[1])[:11] == FIRST
    assert found[0]["first_differing_tick"] is None


def test_a_recorded_run_keeps_its_place_beside_a_policy_of_the_same_name(run, recorded_journal):
    found = json.loads(run("replay-queue", recorded_journal[0], "--policy", "quick", "--json").out)
    assert [one["name"] for one in found] == ["quick (recorded)", "quick"]


def test_decisions_that_differ_are_told_with_the_first_tick(run, recorded_journal, tmp_path):
    lines = recorded_journal[0].read_text().splitlines()
    deciding = [at for at, line in enumerate(lines) if "matches" in json.loads(line)]
    changed = json.loads(lines[deciding[3]])
    del changed["matches"]
    lines[deciding[3]] = json.dumps(changed)
    (tmp_path / "changed.jsonl").write_text("\n".join(lines) + "\n")
    ended = run("replay-queue", "changed.jsonl")
    assert ended.code == 0
    # line 1 is the head, so the line's place in the list is the number of its tick
    assert f"differ from tick {deciding[3]} on, {deciding[3] - 1} s after the first: it was recorded with" in ended.out
    (found,) = json.loads(run("replay-queue", "changed.jsonl", "--json").out)
    assert found["first_differing_tick"] == deciding[3]


def test_a_damaged_journal_ends_with_one_and_names_the_line(run, recorded_journal, tmp_path):
    lines = recorded_journal[0].read_text().splitlines()
    (tmp_path / "cut.jsonl").write_text("\n".join(lines[:-1]) + "\n")
    ended = run("replay-queue", "cut.jsonl")
    assert (ended.code, ended.out) == (1, "")
    assert f"cut.jsonl, line {len(lines) - 1}" in ended.err
    ended = run("replay-queue", "nosuch.jsonl")
    assert (ended.code, ended.err) == (2, "error: nosuch.jsonl: No such file or directory\n")
    (tmp_path / "empty.jsonl").touch()
    assert "empty.jsonl is empty; expected a queue journal" in run("replay-queue", "empty.jsonl").err
    assert run("replay-queue", recorded_journal[0], "--policy", "nope").code == 2


def test_a_hostile_recorded_name_cannot_move_the_cursor(run, recorded_journal, tmp_path):
    lines = recorded_journal[0].read_text().splitlines()
    header = json.loads(lines[0]) | {"name": "\x1b[2J\u202eevil" + "x" * 300}
    (tmp_path / "hostile.jsonl").write_text("\n".join([json.dumps(header), *lines[1:]]) + "\n")
    ended = run("replay-queue", "hostile.jsonl", "--report", "page.html")
    assert ended.code == 0
    assert all(line.isprintable() for line in (ended.out + ended.err).splitlines())
    assert "\x1b" not in (tmp_path / "page.html").read_text().split('id="figures"')[0]


@pytest.mark.slow
def test_the_first_policy_is_fitted_to_the_players_of_the_scenario(run):
    few = ("simulate-queue", "--team-size", "1", "--arrivals", "3", "--minutes", "1", "--strict", "0")
    told = run(*few, "--within", "15", "--share", "0.8")
    assert told.code == 0
    assert "balanced and auto" in told.out
    assert "Players join at 3" in told.out
    assert ", none of them is strict; the 2 players of a match take 1 s to arrive.\n" in told.out
    assert "four of five wait" in told.out
    assert "--share 2: expected a number from 0.5 to 0.99" in run(*few, "--share", "2").err
