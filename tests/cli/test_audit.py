"""The audit trail: what is done at the command line stands there beside what is done over HTTP."""

import pytest

from evenmatch.accounts.audit_trail import Audit
from evenmatch.operations.service import Service


@pytest.fixture
def trail(league):
    def entries():
        with Service.open(str(league)) as service:
            return Audit(service.database).page()[::-1]

    return entries


def test_whatever_changes_a_ladder_is_noted_once_with_its_reason(run, trail, tmp_path):
    (tmp_path / "start.csv").write_text("player,rating\nnew,1700\n")
    for line in (
        ["ladder", "create", "arena", "--system", "wager"],
        ["ladder", "change", "duel", "--title", "Duels"],
        ["void", "d01", "--ladder", "duel", "--reason", "a bug"],
        ["reinstate", "--match", "d01", "--ladder", "duel"],
        ["ban", "f", "--ladder", "duel"],
        ["reinstate", "f", "--ladder", "duel"],
        ["ladder", "change", "duel", "--param", "k=20"],
        ["season", "open", "--ladder", "duel", "--title", "Spring"],
        ["player", "rename", "a", "Anna"],
        ["import", "start.csv", "--ladder", "duel", "--ratings"],
        ["player", "merge", "new", "--into", "Anna", "--yes"],
        ["player", "erase", "e", "--yes"],
        ["queue", "set", "duel", "ranked", "--team-size", "1"],
        ["queue", "remove", "duel", "ranked"],
        ["void", "d02", "--ladder", "duel", "--preview"],
        ["void", "none", "--ladder", "duel"],
    ):
        ended = run(*line)
        assert ended.code == (2 if "none" in line else 0), ended.err
    told = [(one.action, one.ladder, one.target) for one in trail()]
    assert ("ladder.created", "duel", None) in told
    assert [one for one in told if one[:2] != ("ladder.created", "duel")] == [
        ("ladder.created", "arena", None),
        ("settings.changed", "duel", None),
        ("match.voided", "duel", "d01"),
        ("match.reinstated", "duel", "d01"),
        ("player.banned", "duel", "f"),
        ("player.reinstated", "duel", "f"),
        ("rules.changed", "duel", None),
        ("season.opened", "duel", None),
        ("player.renamed", None, "a"),
        ("ratings.started", "duel", None),
        ("player.merged", None, "new"),
        ("player.erased", None, told[-3][2]),
        ("queue.set", "duel", "ranked"),
        ("queue.removed", "duel", "ranked"),
    ]
    by_action = {one.action: one for one in trail()}
    assert by_action["match.voided"].body == {"reason": "a bug"}
    assert by_action["rules.changed"].body["parameters"]["k"] == 20.0
    assert {one.actor for one in trail()} == {"operator"}
