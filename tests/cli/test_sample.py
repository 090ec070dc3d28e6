"""The sample: a season from the first match to standings, a story and a picture; the same every time."""

import json

from evenmatch import read


def test_the_sample_is_a_season_its_ratings_a_story_and_a_picture(run, tmp_path):
    told = run("sample", "--folder", tmp_path / "sample")
    assert told.code == 0
    assert told.err == ""
    assert "The top 10 of 240, rated by wager" in told.out
    assert "(quit)" in told.out
    assert len(read(tmp_path / "sample" / "season.csv")) == 4000
    assert "Plotly.newPlot(" in (tmp_path / "sample" / "rating-paths.html").read_text(encoding="utf-8")
    again = run("sample", "--folder", tmp_path / "again", "--json")
    document = json.loads(again.out)
    assert len(document["standings"]) == 240
    assert (tmp_path / "again" / "ratings.csv").read_bytes() == (tmp_path / "sample" / "ratings.csv").read_bytes()
    assert any(player["quit"] for team in document["explained"]["teams"] for player in team["players"])


def test_a_folder_that_cannot_be_made_is_a_wrong_value(run, tmp_path):
    (tmp_path / "file").write_text("")
    told = run("sample", "--folder", tmp_path / "file")
    assert told.code == 2
    assert "expected a folder that can be created" in told.err
