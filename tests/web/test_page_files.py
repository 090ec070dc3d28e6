"""The pages of a ladder as files: a crawl finds every link, hostile names are safe, hidden ratings stay hidden."""

import re
from html import unescape
from pathlib import Path

import pytest

from evenmatch import rules
from evenmatch.ladders.settings import Settings
from evenmatch.web.page_files import write_pages
from ledger.sample_matches import duel
from run_command import run_command
from web_client import HOSTILE, RESULTS, elo_by_hand, words

ROOT = Path(__file__).parents[2]
SEASON = ROOT / "docs" / "examples" / "season.csv"
NAMES = ["Ann", "ann", "..", "../../etc", "con", "a/b?c#d&e", "é" * 200, HOSTILE]
LINK = re.compile(r'\s(?:href|src)="([^"]*)"')


def written(service, ladder, folder, limit=1000, progress=lambda _: None):
    """Write the pages as of the last match; every file with its bytes."""
    write_pages(service, ladder, folder, service.view(ladder, as_of="last").snapshot.as_of, limit, progress)
    return files_of(folder)


def files_of(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def crawled(folder):
    """The files that links lead to from index.html. Each is there, below the folder, and none needs a script."""
    found, ahead = set(), [folder / "index.html"]
    while ahead:
        page = ahead.pop()
        found.add(page.relative_to(folder).as_posix())
        if page.suffix != ".html":
            continue
        text = page.read_text()
        assert not re.search(r"<(?:script|form)\b", text)
        for link in map(unescape, LINK.findall(text)):
            path, _, fragment = link.partition("#")
            assert re.fullmatch(r"(?:\.\./)?[\w./-]*", path), link
            target = (page.parent / path).resolve() if path else page
            assert target.is_relative_to(folder), link
            assert target.is_file(), link
            assert not fragment or f'id="{fragment}"' in target.read_text(), link
            if target.relative_to(folder).as_posix() not in found:
                ahead.append(target)
    return found


def test_every_file_can_be_reached_and_shows_ratings_by_elos_formula(service, league, tmp_path):
    files = written(service, league, tmp_path / "pages")
    assert crawled(tmp_path / "pages") == set(files)
    rating, change = elo_by_hand(RESULTS)
    index = words(files["index.html"].decode())
    assert index.index("ann") < index.index("bob")
    assert f"{rating['joe']:,.0f}" in index
    (joe,) = (text.decode() for name, text in files.items() if name.startswith("players/joe-"))
    assert f"{change['joe']:+.2f}".replace("-", "−") in joe


def test_hostile_names_get_different_files_with_plain_names(service, tmp_path):
    settings = Settings().changed({"placement": 0, "active_days": 1000.0})
    service.create_ladder("a/b?", "elo", rules("elo"), settings)
    pairs = zip(NAMES, [*NAMES[1:], NAMES[0]], strict=True)
    service.record_many("a/b?", [duel(at, *who, ladder="a/b?") for at, who in enumerate(pairs, 1)])
    files = written(service, "a/b?", tmp_path / "pages")
    players = [name for name in files if name.startswith("players/")]
    assert len({name.lower() for name in players}) == len(NAMES)
    assert all(re.fullmatch(r"players/[a-z0-9-]{1,60}\.html", name) for name in players)
    assert crawled(tmp_path / "pages") == set(files)
    assert all(b"<b>" not in text.replace(b"<b><bdi>a/b?", b"") for text in files.values())


def test_two_runs_write_the_same_bytes_and_the_second_removes_only_pages_of_its_own(service, league, tmp_path):
    folder = tmp_path / "pages"
    first = written(service, league, folder)
    (folder / "CNAME").write_text("ranks.test")
    (folder / "players" / "mine.html").write_text("mine")
    assert written(service, league, folder) == {**first, "CNAME": b"ranks.test", "players/mine.html": b"mine"}
    few = written(service, league, folder, limit=2)
    assert sum(name.startswith("players/") for name in few) == 3
    assert sum(name.startswith("matches/") for name in few) == 2
    assert few["players/mine.html"] == b"mine"
    (folder / "players" / "mine.html").unlink()
    (folder / "CNAME").unlink()
    assert crawled(folder) == set(files_of(folder))


def test_an_interrupted_run_leaves_the_files_as_they_were(service, league, tmp_path):
    folder = tmp_path / "pages"
    before = written(service, league, folder)
    service.record_many(league, [duel(20, "ann", "new", ladder=league)])

    def interrupt(done):
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        written(service, league, folder, progress=interrupt)
    assert files_of(folder) == before
    assert not list(folder.glob(".*"))


@pytest.mark.parametrize("show", ["percentile", "division"])
def test_no_file_of_a_ladder_that_hides_its_ratings_has_one(service, league, tmp_path, show):
    shown = b"".join(written(service, league, tmp_path / "shown").values())
    service.change_settings(league, {"show": show})
    hidden = b"".join(written(service, league, tmp_path / "hidden").values())
    rating, change = elo_by_hand(RESULTS)
    told = [f"{value:,.0f}" for value in rating.values()] + [f"{value:+.2f}" for value in change.values() if value > 0]
    told += [f'data-value="{value:.6f}'[:18] for value in rating.values()]
    assert all(text.encode() in shown for text in told)
    assert [text for text in told if text.encode() in hidden] == []
    crawled(tmp_path / "hidden")


def test_the_command_rates_a_file_and_writes_its_pages(tmp_path):
    ended = run_command("standings", SEASON, "--system", "elo", "--html", tmp_path / "pages")
    assert ended.code == 0, ended.err
    assert "index.html" in ended.out
    files = files_of(tmp_path / "pages")
    assert crawled(tmp_path / "pages") == set(files)
    assert sum(name.startswith("matches/") for name in files) == 24  # season.csv has so many


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([SEASON, "--system", "elo"], "--html"),
        ([SEASON, "--html", "pages"], "--system"),
        (["--html", "pages", "--around", "ann"], "--around"),
    ],
)
def test_options_that_do_not_go_together_are_refused(arguments, said):
    ended = run_command("standings", *arguments)
    assert ended.code == 2
    assert said in ended.err


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "taken").write_text("a file")
    ended = run_command("standings", SEASON, "--system", "elo", "--html", tmp_path / "taken")
    assert ended.code == 2
    assert f"{tmp_path / 'taken'}: cannot be written" in ended.err


def test_pages_and_files_link_to_the_imprint_of_the_site(service, league, tmp_path, monkeypatch):
    monkeypatch.setenv("EVENMATCH_IMPRINT", "https://ranks.test/imprint?a=1&b=2")
    monkeypatch.setenv("EVENMATCH_IMPRINT_NAME", "Impressum")
    files = written(service, league, tmp_path / "pages")
    assert b'<a href="https://ranks.test/imprint?a=1&amp;b=2">Impressum</a>' in files["index.html"]


def test_an_imprint_that_is_no_address_is_refused(monkeypatch):
    monkeypatch.setenv("EVENMATCH_IMPRINT", "javascript:alert(1)")
    ended = run_command("serve", "--port", "0")
    assert ended.code == 2
    assert "EVENMATCH_IMPRINT is 'javascript:alert(1)'" in ended.err
