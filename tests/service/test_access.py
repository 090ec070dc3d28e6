"""Who may do what."""

import pytest

from evenmatch.accounts.access import ANYONE, OPERATOR, SCOPES, Caller
from evenmatch.errors import ForbiddenError


def caller(*scopes, ladders=None, player=None):
    return Caller("key em_abcdefghij", frozenset(scopes), None if ladders is None else frozenset(ladders), player)


# A scope that was granted, and all that it lets somebody do
GRANTS = [
    ("read", {"read"}),
    ("ratings", {"ratings", "read"}),
    ("report", {"report", "read", "ratings"}),
    ("queue", {"queue", "read"}),
    ("admin", {"report", "queue", "read", "ratings", "admin"}),
]


@pytest.mark.parametrize(("granted", "may"), GRANTS)
def test_report_and_queue_may_read_too_and_an_admin_may_do_everything(granted, may):
    assert {scope for scope in SCOPES if caller(granted).may(scope)} == may
    assert {scope for scope in SCOPES if caller(granted, ladders=["duel"]).may(scope, "duel")} == may


def test_scopes_add_up_and_an_unknown_one_is_nobodys():
    assert {scope for scope in SCOPES if caller("report", "queue").may(scope)} == {"report", "queue", "read", "ratings"}
    assert not caller("admin").may("reports")
    assert not caller().may("read")


def test_a_key_of_some_ladders_may_nothing_on_others():
    one = caller("admin", "report", ladders=["duel", "team"])
    for scope in SCOPES:
        assert one.may(scope, "team")
        assert not one.may(scope, "Duel")
        assert caller("admin").may(scope, "Duel")


def test_what_is_no_one_ladders_takes_an_admin_of_all_ladders():
    assert caller("admin").may("admin")
    assert not caller("admin", ladders=["duel"]).may("admin")
    assert caller("admin", ladders=["duel"]).may("read")  # as the list of ladders, of which it sees its own


def test_the_refusal_says_who_has_what_and_what_is_needed():
    with pytest.raises(ForbiddenError) as told:
        caller("report", "queue").check("admin", "duel")
    assert str(told.value) == "key em_abcdefghij has the scope report and queue; the scope admin is required"
    with pytest.raises(ForbiddenError) as told:
        caller("admin", ladders=["team", "duel"]).check("report", "o'hara")
    assert str(told.value) == (
        "key em_abcdefghij may act on 'duel', 'team'; the scope report on ladder \"o'hara\" is required"
    )
    with pytest.raises(ForbiddenError, match=r"the scope admin on all ladders .* is required"):
        caller("admin", ladders=["duel"]).check("admin")


def test_a_player_speaks_for_nobody_else_and_a_key_for_everybody():
    ann = caller("queue", player="ann")
    ann.speaks_for("ann")
    caller("queue").speaks_for("bob")
    with pytest.raises(ForbiddenError, match="cannot act for 'Ann': the token is only valid for 'ann'"):
        ann.speaks_for("Ann")


def test_anyone_may_read_and_the_operator_may_do_everything():
    assert [scope for scope in SCOPES if ANYONE.may(scope, "duel")] == ["read"]
    assert [scope for scope in SCOPES if OPERATOR.may(scope)] == list(SCOPES)
