"""Names that pass as another player's: operators see them, and a ladder's rule refuses them."""

from contextlib import contextmanager

import disarm
import pytest

from evenmatch.ledger import name_skeletons
from evenmatch.ledger.name_skeletons import oddities_of, skeleton_of
from ledger.sample_matches import duel

CYRILLIC = "p\u0430ypal"  # with U+0430
ALIKE = [  # of confusables.txt of Unicode TR 39
    ("paypal", CYRILLIC),
    ("paypal", "paypa1"),
    ("paypal", "paypaI"),
    ("Ober", "0ber"),
    ("mike", "rnike"),
    ("ann", "Ann"),
    ("official", "OFFICIAL"),
    ("ian", "Ian"),
    ("vip", "VIP"),
    ("mike", "MIKE"),
    ("FISH", "\ufb01sh"),  # the ligature
    ("ann", "\uff41nn"),  # full width
    ("ann", "a\u200bnn"),
    ("ann", "\u202eann"),
    ("ann", "ann\u00ad"),
    ("scope", "\u0455\u0441\u043e\u0440\u0435"),  # wholly Cyrillic
    # ignorable without being a format character: not assigned, in Khmer, in Mongolian (DerivedCoreProperties.txt)
    *(("alice", "al\u2065ice"), ("alice", "alice\ufff0"), ("alice", "\U000e0fffalice")),
    *(("\u1780\u1781", "\u1780\u17b4\u1781"), ("\u1820\u1821", "\u1820\u180b\u1821")),
]
UNSEEN = [
    "a\u200bnn",
    "\u202eann",
    "ann\u00ad",
    "ann\u3164",
    "ann\ufeff",
    "ann\x1b",
    "a\u2060nn",
    "ann\U000e0041",
    "ann\u2065",
    *("\u3164", "\u2800", "\u00a0\u2003"),  # nothing is seen of the whole name
]
PLAIN = [
    *("ann", "x/y <b>", "Zo\u00eb", "\u0410\u043d\u043d\u0430", "\u30bf\u30ed\u30a6bot", "\u65e5\u672c\u8a9e\u30c6"),
    *("\ud55c\uad6d abc", "\U0001f469\u200d\U0001f680", "\u0639\u0644\u064a", "e\u0301mile"),
]


@pytest.fixture
def database_url(either_database):
    return either_database


@pytest.fixture
def ladder(admin, service):
    """A ladder that refuses odd names, and another one, with players of their own."""
    for name, rule in (("strict", "refuse"), ("free", "warn")):
        settings = {"names": rule, "placement": 0}
        created = admin.post("/v1/ladders", json={"name": name, "system": "elo", "settings": settings})
        assert created.status_code == 201, created.text
    service.record(duel(1, "paypal", "mike", "strict"))
    service.record(duel(1, "zebra", "bob", "free"))
    return admin


def report(asking, match_id, *names, ladder="strict"):
    teams = [{"place": place, "players": [{"player": name}]} for place, name in enumerate(names, 1)]
    body = {"id": match_id, "played_at": "2026-01-09T12:00:00Z", "teams": teams}
    return asking.post(f"/v1/ladders/{ladder}/matches", json=body)


def odd(asking, ladder, **query):
    answer = asking.get(f"/v1/ladders/{ladder}/odd-names", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize(("name", "other"), ALIKE)
def test_names_that_look_alike_have_one_skeleton(name, other):
    assert skeleton_of(name) == skeleton_of(other)


def test_names_that_look_different_have_skeletons_of_their_own():
    names = ["ann", "anna", "bob", "b0b1", "Zo\u00eb", "\u65e5\u672c", "\u200b", "\u2060"]
    assert len({skeleton_of(name) for name in names}) == len(names)


def test_unseen_characters_and_mixed_scripts_are_odd_and_nothing_else():
    assert [oddities_of(name)[:1] for name in UNSEEN] == [("invisible",)] * len(UNSEEN)
    assert oddities_of(CYRILLIC) == ("mixed-scripts",)
    assert [oddities_of(name) for name in PLAIN] == [()] * len(PLAIN)


def test_many_emoji_are_judged_one_by_one_and_an_endless_one_is_odd():
    family = "\U0001f468\u200d\U0001f469\U0001f3fd\u200d\U0001f467\u200d\U0001f466"
    assert oddities_of(family * 30) == ()
    assert oddities_of(family * 20 + "a\u200bb" + family * 5) == ("invisible",)
    assert oddities_of("\u200d".join(["\U0001f468"] * 100)) == ("invisible",)


def test_a_skeleton_is_no_longer_than_names_may_be():
    names = ["\ufdfa" * 250 + end for end in "ab"]  # eighteen letters each
    assert len(skeleton_of(names[0])) < 256
    assert skeleton_of(names[0]) == skeleton_of(names[0].upper()) != skeleton_of(names[1])


def test_names_are_judged_before_the_transaction(ladder, service, monkeypatch):
    writing, during = [False], []

    @contextmanager
    def write(real=service.database._writing, **options):
        with real(**options) as store:
            writing[0] = True
            try:
                yield store
            finally:
                writing[0] = False

    def inspected(text, real=disarm.inspect_anomalies):
        during.append(writing[0])
        return real(text)

    monkeypatch.setattr(service.database, "_writing", write)
    monkeypatch.setattr(disarm, "inspect_anomalies", inspected)
    monkeypatch.setattr(name_skeletons, "_JUDGED", name_skeletons._JudgedNames())
    report(ladder, "m2", "\U0001f600" * 20, "\U0001f601" * 20)
    report(ladder, "m3", "\U0001f602" * 20, "\U0001f603" * 20, ladder="free")
    assert during
    assert not any(during)


@pytest.mark.parametrize("name", [CYRILLIC, "PaypaI", "rnike", "new\u200b", "new\u202e", "n\u0435w"])
def test_a_strict_ladder_refuses_odd_names_in_reports_and_joins(ladder, service, name):
    ladder.put("/v1/ladders/strict/queues/main", json={"policy": {"team_size": 1}})
    players = service.search("", 100)
    refused = report(ladder, "m2", "zoe", name)
    assert refused.status_code == 422
    assert any(reason in refused.text for reason in ("looks like", "invisible characters", "several scripts"))
    join = {"members": [{"player": name}], "queues": ["main"]}
    assert ladder.post("/v1/ladders/strict/tickets", json=join).status_code == 422
    live = {"teams": [{"players": [name]}, {"players": ["zoe"]}]}
    assert ladder.put("/v1/ladders/strict/live/l1", json=live).status_code == 422
    assert service.search("", 100) == players
    assert report(ladder, "m3", "paypal", "mike").status_code == 200
    assert report(ladder, "m2", "zoe", name, ladder="free").status_code == 200


def test_of_two_new_names_that_look_alike_the_second_is_refused(ladder):
    assert report(ladder, "m2", "n00b", "nOOb").status_code == 422
    body = {"played_at": "2026-01-09T12:00:00Z"}
    sides = [("n00b", "zoe"), ("eve", "nOOb"), ("eve", "joe")]
    matches = [
        {
            **body,
            "id": f"b{at}",
            "teams": [{"place": 1, "players": [{"player": a}]}, {"place": 2, "players": [{"player": b}]}],
        }
        for at, (a, b) in enumerate(sides)
    ]
    outcomes = ladder.post("/v1/ladders/strict/matches/batch", json={"matches": matches}).json()["outcomes"]
    assert ["receipt" in outcome for outcome in outcomes] == [True, False, True]
    assert "looks like 'n00b'" in outcomes[1]["problem"]["detail"]


def test_operators_are_told_of_odd_names_on_their_ladder_alone(ladder, service):
    report(ladder, "m2", "z\u0435bra", "rnike", ladder="free")  # mike is on the other ladder
    assert odd(ladder, "free")["items"] == [
        {"name": "z\u0435bra", "player": "z\u0435bra", "oddities": ["look-alike", "mixed-scripts"], "like": ["zebra"]}
    ]
    assert odd(ladder, "strict")["items"] == []
    report(ladder, "m3", "mike", "zebra", ladder="free")
    listed = odd(ladder, "free")["items"]
    assert [(row["name"], row["like"]) for row in listed] == [("rnike", ["mike"]), ("z\u0435bra", ["zebra"])]
    first = odd(ladder, "free", limit=1)
    assert odd(ladder, "free", limit=1, cursor=first["next"])["items"] == listed[1:]
    service.merge("rnike", "bob")
    assert [row["player"] for row in odd(ladder, "free")["items"]] == ["bob", "z\u0435bra"]
    service.erase("z\u0435bra")
    assert [row["name"] for row in odd(ladder, "free")["items"]] == ["rnike"]
    ladder.patch("/v1/ladders/free", json={"names": "any"})
    assert odd(ladder, "free")["items"] == []


def test_a_name_that_another_ladder_has_alone_is_no_look_alike(ladder):
    assert report(ladder, "m2", "zebrA", "zoe").status_code == 200


@pytest.mark.parametrize("name", [CYRILLIC, "PaypaI", "new\u200b"])
def test_a_name_that_another_ladder_has_is_refused_as_a_new_one_is(ladder, name):
    ladder.put("/v1/ladders/strict/queues/main", json={"policy": {"team_size": 1}})
    asked = [
        lambda: report(ladder, "m2", "zoe", name),
        lambda: ladder.post("/v1/ladders/strict/tickets", json={"members": [{"player": name}], "queues": ["main"]}),
        lambda: ladder.put("/v1/ladders/strict/live/l1", json={"teams": [{"players": [name]}, {"players": ["zoe"]}]}),
    ]
    fresh = [(answer.status_code, answer.json()["detail"]) for answer in (ask() for ask in asked)]
    assert report(ladder, "m2", name, "bob", ladder="free").status_code == 200
    assert [(answer.status_code, answer.json()["detail"]) for answer in (ask() for ask in asked)] == fresh
    assert [status for status, _ in fresh] == [422] * len(asked)
    assert report(ladder, "m3", "zebra", "zoe").status_code == 200  # of another ladder, and looks like no name


def test_a_player_who_waits_on_the_ladder_is_not_judged_again(ladder):
    ladder.put("/v1/ladders/strict/queues/main", json={"policy": {"team_size": 1}})
    join = {"members": [{"player": "n00b"}], "queues": ["main"]}
    assert ladder.post("/v1/ladders/strict/tickets", json=join).status_code == 201
    assert report(ladder, "m2", "nOOb", "zoe").status_code == 200
    assert report(ladder, "m3", "n00b", "zoe").status_code == 200


@pytest.mark.parametrize("name", [CYRILLIC, "PaypaI", "new\u200b"])
def test_a_strict_ladder_refuses_odd_names_in_starting_ratings_and_renames(ladder, service, name):
    players = service.search("", 100)
    ratings = {"ratings": {"zoe": 1600, name: 1500}}
    started = ladder.post("/v1/ladders/strict/start-ratings", json=ratings)
    assert started.status_code == 422, started.text
    renamed = ladder.post("/v1/players/mike/rename", json={"to": name})
    assert renamed.status_code == 422, renamed.text
    assert service.search("", 100) == players
    assert ladder.post("/v1/players/zebra/rename", json={"to": name}).status_code == 200  # of the other ladder


def test_a_player_may_be_renamed_to_a_name_like_their_own(ladder):
    assert ladder.post("/v1/players/paypal/rename", json={"to": "PayPal"}).status_code == 200
    assert ladder.post("/v1/players/PayPal/rename", json={"to": "paypal"}).status_code == 200
