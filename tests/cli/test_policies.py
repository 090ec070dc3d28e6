"""evenmatch policies: presets as tables, documents and files that can be edited and read again."""

import inspect
import json
import tomllib

import pytest
import typer

from evenmatch.cli import policies
from evenmatch.cli.app import application
from evenmatch.errors import BadParameterError, InputError, UnknownNameError, UsageError
from evenmatch.options import options_of
from evenmatch.policy import Policy, presets

ODD = Policy(
    team_size=7,
    teams=3,
    min_team_size=4,
    steps=((0, 0.5), (7.25, 12.000000000001), (1e9, 100)),
    rematch_fade=1234.567890123,
    max_odds=None,
    max_rating_spread=1e-7,
    max_wait=86_400.000001,
    overdue_after=1e6,
    roles={'tank "x" \\ \x1b[31m\u202e': 1, "médecin": 2},
)


@pytest.fixture
def policy_file(tmp_path):
    """Write a policy file; gives its path."""

    def write(text, name="mine.toml"):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


def test_the_presets_are_listed_with_what_differs(run):
    ended = run("policies")
    lines = ended.out.splitlines()
    assert (ended.code, ended.err) == (0, "")
    assert lines[1].split() == ["option", "balanced", "quick", "fair", "effect"]
    rows = {line.split()[0]: line for line in lines[2:-5] if line}
    assert rows["max_odds"].split()[1:4] == ["0.6", "0.7", "0.55"]
    assert "0s:4.5 60s:10 90s:20 120s:40" in rows["steps"]
    assert "max_ping" not in rows  # none has it
    assert list(rows)[:4] == ["team_size", "teams", "steps", "even_spread"]
    assert lines[-5].endswith("costs in the equivalent seconds of waiting.")
    assert lines[-3:] == ["  balanced: 480 s, 4,080 s", "  quick: 240 s, 2,040 s", "  fair: 1,200 s, 10,200 s"]


@pytest.mark.parametrize("name", presets())
def test_a_printed_preset_is_a_file_that_stands_for_it(run, policy_file, name):
    ended = run("policies", name)
    assert (ended.code, ended.err) == (0, "")
    assert policies.find(str(policy_file(ended.out))) == presets()[name]
    assert policies.find(str(policy_file(run("policies", name, "--json").out, "mine.json"))) == presets()[name]


def test_every_option_is_printed_after_what_it_does(run):
    lines = run("policies", "quick").out.splitlines()
    effects = {name: option.meaning for name, option in options_of(Policy).items()}
    known = set(Policy().to_data())
    assert set(effects) == known
    for name in known:
        at = next(at for at, line in enumerate(lines) if line.startswith(f"{name} = "))
        start = max(above for above in range(at) if not lines[above].startswith("#")) + 1
        said = " ".join(line.removeprefix("# ") for line in lines[start:at])
        assert said.startswith(effects[name])


def test_an_odd_policy_comes_back_from_its_file_as_it_was():
    text = policies.as_toml(ODD, 'a "name"\n\x1b[2J')
    assert Policy.from_data(tomllib.loads(text)) == ODD
    assert all(line.isprintable() for line in text.splitlines())


def test_a_file_says_only_what_differs_from_the_preset_it_names(policy_file):
    found = policies.find(str(policy_file('preset = "fair"\nmax_odds = "none"\nteam_size = 5\n')))
    assert (found.max_odds, found.team_size, found.steps) == (None, 5, presets()["fair"].steps)


# What stands in the file, its name, and what is said besides the path
WRONG = [
    ("team_size = 99", "a.toml", "team_size=99: expected a whole number from 1 to 50"),
    ("team_size = 2.5", "a.toml", "team_size=2.5: expected a whole number"),
    ("max_odds = nan", "a.toml", "max_odds=nan: expected a number from 0.5 to 1, or none"),
    ('{"max_odds": true}', "a.json", "max_odds=True: expected"),
    ("steps = [[0, 2], [0, 5]]", "a.toml", "steps has [0, 5] after [0, 2]"),
    ("teamsize = 6", "a.toml", "unknown option of a policy 'teamsize' (did you mean 'team_size'?)"),
    ('preset = "fiar"', "a.toml", "unknown policy 'fiar' (did you mean 'fair'?)"),
    ("team_size = ", "a.toml", "is not readable as TOML"),
    ('{"team_size": 6', "a.json", "is not readable as JSON"),
    ("[" * 100_000, "a.json", "is not readable as JSON"),
    ("[1, 2]", "a.json", "contains [1, 2]; expected a table"),
]


@pytest.mark.parametrize(("text", "name", "said"), WRONG)
def test_a_bad_file_is_told_with_its_name_and_what_would_be_accepted(policy_file, text, name, said):
    path = policy_file(text, name)
    with pytest.raises(InputError) as told:
        policies.find(str(path))
    assert str(path) in str(told.value)
    assert said in str(told.value)


def test_what_is_no_policy_is_a_wrong_value(tmp_path, policy_file):
    with pytest.raises(UnknownNameError, match="did you mean 'balanced'"):
        policies.find("balanecd")
    with pytest.raises(UsageError, match="No such file"):
        policies.find(str(tmp_path / "nosuch.toml"))
    with pytest.raises(UsageError, match=r"suffix '.yaml'; expected a policy in a .toml or .json"):
        policies.find(str(policy_file("team_size = 6", "mine.yaml")))
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not a text file"):
        policies.find(str(tmp_path / "bytes.toml"))


def test_exit_codes_tell_a_wrong_name_from_wrong_contents(run, policy_file):
    assert run("policies", "balanecd").code == 2
    assert run("policies", "nosuch.toml").code == 2
    ended = run("policies", policy_file("max_odds = 3"))
    assert (ended.code, ended.out) == (1, "")
    assert "max_odds=3: expected a number from 0.5 to 1, or none" in ended.err


def test_policies_are_called_by_their_file_as_it_was_told_where_another_is_called_so(tmp_path, policy_file):
    mine, fifo, quick = (str(policy_file("team_size = 4", name)) for name in ("mine.toml", "fifo.toml", "quick.toml"))
    names = list(policies.policies_of(["quick", mine, fifo, quick, mine], None, None))
    assert names == ["quick", "mine.toml", "fifo.toml", "quick.toml"]
    (tmp_path / "sub").mkdir()
    other = str(policy_file("team_size = 3", "sub/mine.toml"))
    assert list(policies.policies_of([mine, other], None, None)) == [mine, other]
    found = policies.policies_of(["fair", mine], 3, 4)
    assert [(one.team_size, one.teams) for one in found.values()] == [(3, 4), (3, 4)]


def test_teams_that_a_policy_cannot_have_are_told_with_policy_and_option(policy_file):
    path = policy_file("roles = { tank = 2 }\nteam_size = 5")
    with pytest.raises(BadParameterError, match=r"mine.toml with --team-size 1: roles need 2 players per team"):
        policies.policies_of([str(path)], 1, None)


def test_json_lists_every_option_of_every_preset(run):
    listed = json.loads(run("policies", "--json").out)
    assert [one["name"] for one in listed] == list(presets())
    assert all(set(one["options"]) == set(Policy().to_data()) for one in listed)


def test_the_examples_of_the_help_follow_on_each_other(run, tmp_path, monkeypatch):
    """Those of the three commands, one after the other in one folder, but for how long they simulate."""
    monkeypatch.chdir(tmp_path)
    group = typer.main.get_command(application())
    for name in ("simulate-queue", "policies", "replay-queue"):
        lines = [line.strip() for line in inspect.cleandoc(group.commands[name].callback.__doc__).splitlines()]
        for line in (line.removeprefix("evenmatch ") for line in lines if line.startswith("evenmatch ")):
            command, _, file = line.partition(" > ")
            words = command.split() + (["--minutes", "0.5"] if command.startswith("simulate-queue") else [])
            ended = run(*words)
            assert ended.code == 0, ended
            if file:
                (tmp_path / file).write_text(ended.out)
