"""Files of matches on the operators' pages: checked, imported and exported, with the repository's own reader."""

import csv
import io
import re
from html import unescape

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evenmatch import rules
from evenmatch.ladders.ladder_queries import LadderQueries
from evenmatch.ladders.settings import Settings
from web_client import words

AT = "/ladders/league/operate/files"
GOOD = """match_id,played_at,team,player,place
new-1,2026-01-05T10:00:00Z,a,ann,1
new-1,2026-01-05T10:00:00Z,b,zoe,2
"""
BAD = """match_id,played_at,team,player,place
new-1,2026-01-05T10:00:00Z,a,ann,1
new-1,2026-01-05T10:00:00Z,b,zoe,2
new-2,yesterday,a,ann,1
new-2,yesterday,b,bob,2
"""


def send(operator, content, name="matches.csv", at=AT, **form):
    """Send the form with a file, as a browser does."""
    proof = re.search(r'name="proof" value="([^"]+)"', operator.page(at))[1]
    return operator.post(at, data={"proof": proof, **form}, files={"file": (name, content)})


def test_a_check_lists_problems_with_their_lines_and_changes_nothing(operator, league, service):
    before = service.ladder(league).position
    told = words(send(operator, BAD, do="check").text)
    assert "matches.csv : 1 problem " in told
    assert "line 4 new-2 Played_at is 'yesterday'" in told
    assert "1 match can be added. Nothing was changed." in told
    assert service.ladder(league).position == before


def test_a_file_with_a_problem_is_imported_whole_or_not_at_all_unless_bad_matches_are_left_out(
    operator, league, service, site
):
    before = service.ladder(league).position
    refused = send(operator, BAD, do="import")
    assert refused.status_code == 422
    assert "line 4" in words(refused.text)
    assert service.ladder(league).position == before
    assert send(operator, BAD, do="import", skip_bad="1").status_code == 303
    assert "1 match was added. 0 were known already." in words(operator.page(AT))
    assert service.ladder(league).position == before + 1
    entry = site.audit.page(league)[0]
    assert (entry.action, entry.body["file"]) == ("matches.imported", "matches.csv")


def test_parquet_arrives_byte_for_byte(operator, league, service):
    rows = list(csv.DictReader(io.StringIO(GOOD)))
    table = pa.Table.from_pylist([{**row, "place": int(row["place"])} for row in rows])
    packed = io.BytesIO()
    pq.write_table(table, packed)
    before = service.ladder(league).position
    assert b"\r" in packed.getvalue() or b"\n" in packed.getvalue()
    assert send(operator, packed.getvalue(), "season.parquet", do="import").status_code == 303
    assert service.ladder(league).position == before + 1


def test_a_file_is_larger_than_other_forms_may_be(operator, league, service):
    rows = (
        f"big-{at},2026-01-05T10:00:00Z,{team},p{at % 7}{team},{place}\n"
        for at in range(3000)
        for team, place in (("a", 1), ("b", 2))
    )
    content = "match_id,played_at,team,player,place\n" + "".join(rows)
    assert len(content) > 200_000  # other forms may have 128 KiB
    assert send(operator, content, do="import").status_code == 303
    assert "3,000 matches were added" in words(operator.page(AT))


FOREIGN = "Datum;Sieger;Verlierer;Karte\r\n13.01.2025 20:40;ann;zoe;Dorf\r\n14.01.2025 20:40;Zoe;ann;Dorf\r\n"
FOREIGN += "31.02.2025 20:40;ann;zoe;Dorf\r\n"


def test_a_file_in_another_form_is_explained_and_imported_as_the_form_then_says(operator, league, service):
    before = service.ladder(league).position
    page = send(operator, FOREIGN, "spiele.csv", do="check", zone="Europe/Berlin").text
    told = words(page)
    assert "2 matches can be added. Nothing was changed." in told
    assert "CSV separated by semicolons, UTF-8, a row for each match" in told
    assert "Monday 13 January 2025, 20:40: ann beat zoe" in told
    assert "Not read: Karte" in told
    assert "zoe / Zoe" in told
    assert "line 4" in told
    fields = {
        name: re.search(rf'name="{name}" value="([^"]*)"', page)[1] for name in ("columns", "time_format", "zone")
    }
    assert fields == {
        "columns": "played_at=Datum,winner=Sieger,loser=Verlierer",
        "time_format": "%d.%m.%Y %H:%M",
        "zone": "Europe/Berlin",
    }
    assert send(operator, FOREIGN, "spiele.csv", do="import", skip_bad="1", **fields).status_code == 303
    assert service.ladder(league).position == before + 2


def test_a_file_in_another_form_is_not_imported_unseen(operator, league, service):
    before = service.ladder(league).position
    refused = send(operator, FOREIGN, "spiele.csv", do="import")
    assert refused.status_code == 422
    assert "“Check the file” guesses what its columns mean" in words(refused.text)
    wrong = send(operator, FOREIGN, "spiele.csv", do="import", columns="player")
    assert "--columns player: expected OURS=THEIRS" in words(wrong.text)
    assert service.ladder(league).position == before


def test_an_ambiguous_date_is_asked_for(operator, league):
    told = words(send(operator, "when,winner,loser\n05/01/2026,ann,zoe\n", do="check").text)
    assert "'05/01/2026' may name the day first or the month first" in told
    assert "There is nothing to import" in told


MAPS = "match_id,played_at,winner,loser,map\n" + "".join(
    f"m{number},2026-01-{number:02}T10:00:00Z,ann,zoe,{('dust', 'mill')[number % 2]}\n" for number in range(1, 7)
)


@pytest.fixture
def mapped(service):
    """A ladder that learns from maps."""
    service.create_ladder("mapped", "even", rules("even"), Settings(context=("map",)))
    return "/ladders/mapped/operate/files"


def field(page, name):
    return unescape(re.search(rf'name="{name}" value="([^"]*)"', page)[1])


def test_the_columns_that_a_ladder_learns_from_are_read_and_shown(operator, mapped, service):
    assert field(operator.page(mapped), "context") == "map"
    page = send(operator, MAPS, at=mapped, do="check", context="map").text
    assert "6 matches can be added" in words(page)
    assert "Not read" not in words(page)
    assert field(page, "context") == "map"
    columns = field(page, "columns")
    assert send(operator, MAPS, at=mapped, do="import", columns=columns, context="map").status_code == 303
    assert LadderQueries(service).match("mapped", "m1")[1].context == {"map": "mill"}
    assert LadderQueries(service).match("mapped", "m2")[1].context == {"map": "dust"}


def test_a_file_without_these_columns_can_be_imported_when_the_field_is_emptied(operator, mapped, service):
    refused = send(operator, GOOD, at=mapped, do="check", context="map")
    assert refused.status_code == 422
    assert "has no column 'map'" in words(refused.text)
    assert field(refused.text, "context") == "map"
    assert send(operator, GOOD, at=mapped, do="import", context="").status_code == 303
    assert LadderQueries(service).match("mapped", "new-1")[1].context == {}


def test_a_column_with_another_name_in_the_file_is_named(operator, mapped, service):
    told = words(send(operator, FOREIGN, at=mapped, do="check", context="map").text)
    assert "The file has no column map." in told
    assert "Not read: Karte" in told
    page = send(operator, FOREIGN, at=mapped, do="check", context="map", columns="map=Karte").text
    assert "2 matches can be added" in words(page)
    assert "Not read" not in words(page)
    assert "The file has no column" not in words(page)
    columns = "played_at=Datum,winner=Sieger,loser=Verlierer,map=Karte"
    assert field(page, "columns") == columns
    form = {"columns": columns, "context": "map", "time_format": field(page, "time_format"), "skip_bad": "1"}
    assert send(operator, FOREIGN, at=mapped, do="import", **form).status_code == 303
    listed = LadderQueries(service).matches("mapped", limit=10)
    assert [one.context for one in listed[1]] == [{"map": "Dorf"}] * 2
    page = send(operator, FOREIGN.replace("Karte", "MAP"), at=mapped, do="check", context="map").text
    assert field(page, "columns").endswith(",map=MAP")


@pytest.mark.parametrize("name", ["mode", "queue", "length", "score"])
def test_a_column_that_the_ladder_learns_from_is_not_taken_for_another(operator, service, name):
    service.create_ladder("moded", "even", rules("even"), Settings(context=("mode",)))
    at, other = "/ladders/moded/operate/files", MAPS.replace("dust", "5").replace("mill", "3")
    other = other.replace("played_at,winner,loser,map", f"Date,Winner,Loser,{name}")
    page = send(operator, other, at=at, do="check", context="mode", columns=f"mode={name}").text
    assert "6 matches can be added" in words(page)
    columns = field(page, "columns")
    assert columns.removesuffix(f",mode={name}") == "match_id=match_id,played_at=Date,winner=Winner,loser=Loser"
    assert send(operator, other, at=at, do="import", columns=columns, context="mode").status_code == 303
    assert LadderQueries(service).match("moded", "m1")[1].context == {"mode": "3"}


def test_what_a_ladder_with_context_exports_is_known_to_it(operator, mapped, service):
    form = {"at": mapped, "do": "import", "context": "map"}
    send(operator, MAPS.replace("dust", "01"), columns="winner=winner,loser=loser", **form)
    for suffix in ("csv", "jsonl", "parquet"):
        content = operator.get(f"/ladders/mapped/operate/export?what=matches&form={suffix}").content
        assert send(operator, content, f"m.{suffix}", **form).status_code == 303
        assert "0 matches were added. 6 were known already." in words(operator.page(mapped))


def test_a_value_that_cannot_be_stored_is_found_by_the_check_and_refused_by_the_import(operator, mapped, service):
    wrong = "context column 'map' is 'xxxxxxxxxxxxxxxxxxxx'; expected at most 64 printable characters"
    long = {"content": MAPS.replace("dust", "x" * 65), "at": mapped, "context": "map"}
    page = send(operator, **long, do="check").text
    assert "3 matches can be added" in words(page)
    assert f"line 3 m2 C{wrong[1:]}" in words(page)
    refused = send(operator, **long, do="import", columns=field(page, "columns"))
    assert refused.status_code == 422
    assert wrong in words(refused.text)
    assert service.ladder("mapped").matches == 0


def test_a_ladder_without_context_does_not_ask_for_it(operator, league):
    assert 'name="context"' not in operator.page(AT)


@pytest.mark.parametrize(("what", "column"), [("matches", "match_id"), ("ratings", "rating"), ("journal", "after")])
def test_tables_are_downloaded(operator, league, what, column):
    sent = operator.get(f"/ladders/{league}/operate/export?what={what}&form=csv")
    assert f'filename="{what}.csv"' in sent.headers["content-disposition"]
    rows = list(csv.DictReader(io.StringIO(sent.text)))
    assert {"ann", "bob", "joe"} <= {row["player"] for row in rows}
    assert all(row[column] for row in rows)


def test_what_was_exported_can_be_checked_against_the_ladder_it_came_from(operator, league):
    content = operator.get(f"/ladders/{league}/operate/export?what=matches&form=jsonl").content
    assert "6 matches can be added" in words(send(operator, content, "matches.jsonl", do="check").text)
    send(operator, content, "matches.jsonl", do="import")
    assert "0 matches were added. 6 were known already." in words(operator.page(AT))


def test_the_notice_after_an_import_says_why_nobody_is_listed(operator, league, service):
    send(operator, GOOD, do="import")
    assert "No player is listed" not in words(operator.page(AT))
    service.change_settings(league, {"active_days": 3.0})
    send(operator, GOOD, do="import")
    told = words(operator.page(AT))
    assert "0 matches were added. 1 was known already. No player is listed: of 5 players with enough matches" in told
    assert "none has completed a match in the last 3 days. The last match was on 2026-01-05." in told


def test_without_a_file_the_form_asks_for_one(operator, league):
    refused = operator.submit(AT, do="check")
    assert refused.status_code == 422
    assert "Choose a file" in words(refused.text)


def test_a_file_from_another_session_is_refused(operator, league, service):
    before = service.ladder(league).position
    refused = operator.post(AT, data={"proof": "forged", "do": "import"}, files={"file": ("matches.csv", GOOD)})
    assert refused.status_code == 403
    assert service.ladder(league).position == before


def test_a_form_that_is_cut_off_is_refused(operator, league):
    kind = {"Content-Type": "multipart/form-data; boundary=x"}
    refused = operator.post(AT, content=b"--x\r\nContent-Disposition: form-data\r\n\r\nno name", headers=kind)
    assert refused.status_code == 422
    assert "could not be read" in words(refused.text)
