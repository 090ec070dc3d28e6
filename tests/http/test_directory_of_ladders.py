"""Two databases behind one nginx, with the directory of ladders of docs/scale.md: each request reaches its own."""

import re
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

import proxies
from run_command import run_command
from server_process import Served

ROOT = Path(__file__).parents[2]
LADDERS = {"main": ["duel"], "north": ["eu duel", "Duel", "cup 12"]}

pytestmark = pytest.mark.skipif(proxies.NGINX is None, reason="nginx is not installed")


class Place(NamedTuple):
    """A database with a process of its own, and an operator's key."""

    served: Served
    key: str


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    begun = {}
    for name, ladders in LADDERS.items():
        folder = tmp_path_factory.mktemp(name)
        db = str(folder / "evenmatch.db")
        for ladder in ladders:
            run_command("ladder", "create", ladder, "--system", "elo", "--db", db)
        key = run_command("key", "create", "operator", "--scope", "admin", "--db", db).out.strip()
        served = Served(db, folder, EVENMATCH_HOSTS='["*"]', EVENMATCH_OPEN_READS="true")
        begun[name] = Place(served.__enter__(), key)
    yield begun
    for place in begun.values():
        place.served.kill()


@pytest.fixture(scope="module")
def balancer(places, tmp_path_factory):
    """deploy/nginx.conf with the directory that docs/scale.md shows: its URL."""
    (directory,) = re.findall(r"```nginx\n(.*?)```", (ROOT / "docs" / "scale.md").read_text(), re.S)
    main, north = (places[name].served.address.removeprefix("http://") for name in ("main", "north"))
    directory = re.sub(r"server \S+:\d+", f"server {north}", directory)
    with proxies.nginx(tmp_path_factory.mktemp("balancer"), main, directory=directory) as url:
        yield url


@pytest.fixture
def asking(balancer, places):
    def ask(method, path, of, *, host=None, **rest):
        headers = {"Authorization": f"Bearer {places[of].key}"} | ({} if host is None else {"Host": host})
        return httpx.request(method, f"{balancer}{path}", headers=headers, timeout=30, **rest)

    return ask


def duel(number):
    teams = [{"place": 1, "players": [{"player": "ann"}]}, {"place": 2, "players": [{"player": "bob"}]}]
    return {"id": f"m{number}", "played_at": "2026-01-01T12:00:00Z", "teams": teams}


# ladder in the address, the database that has it
ADDRESSES = [("duel", "main"), ("eu%20duel", "north"), ("Duel", "north"), ("%44uel", "north"), ("cup%2012", "north")]


@pytest.mark.parametrize(("ladder", "place"), ADDRESSES)
def test_reports_and_pages_of_a_ladder_go_to_its_database(asking, ladder, place):
    other = "north" if place == "main" else "main"
    report = asking("POST", f"/v1/ladders/{ladder}/matches", place, json=duel(1))
    assert report.status_code in (200, 201), report.text
    assert [one["match_id"] for one in asking("GET", f"/v1/ladders/{ladder}/matches", place).json()["items"]] == ["m1"]
    assert "bob" in asking("GET", f"/ladders/{ladder}/matches", place).text
    refused = asking("POST", f"/v1/ladders/{ladder}/matches", other, json=duel(2))
    assert refused.status_code == 401  # the key of another database


def test_what_names_no_ladder_goes_to_the_first_database_or_by_the_name_of_its_own(asking):
    def listed(of, host=None):
        found = asking("GET", "/v1/ladders", of, host=host).json()
        return sorted(ladder["name"] for ladder in found["items"])

    assert listed("main") == LADDERS["main"]
    assert listed("north", "north.ranks.example") == sorted(LADDERS["north"])
    assert asking("GET", "/v1/jobs", "north", host="north.ranks.example").status_code == 200
    assert asking("GET", "/v1/jobs", "north").status_code == 401


def test_a_ladder_that_is_not_in_the_directory_is_asked_of_the_first_database(asking):
    assert asking("GET", "/v1/ladders/cup%20x/standings", "main").status_code == 404


def test_a_player_of_one_name_is_another_identity_in_each_database(asking):
    for ladder, of in (("duel", "main"), ("Duel", "north")):
        asking("POST", f"/v1/ladders/{ladder}/matches", of, json=duel(3))
    renamed = asking("POST", "/v1/players/ann/rename", "main", json={"to": "anna"})
    assert renamed.status_code == 200, renamed.text
    assert asking("GET", "/v1/ladders/duel/players/ann", "main").json()["player"] == "anna"
    assert asking("GET", "/v1/ladders/Duel/players/ann", "north").json()["player"] == "ann"


def test_the_ladders_of_one_database_go_on_without_the_other(asking, places):
    with places["north"].served.frozen():
        assert asking("GET", "/v1/ladders/duel/standings", "main").status_code == 200
    places["north"].served.kill()
    gone = asking("GET", "/v1/ladders/Duel/standings", "north")
    assert (gone.status_code, gone.headers["content-type"]) == (502, "application/problem+json")
    assert asking("GET", "/v1/ladders/duel/standings", "main").status_code == 200
