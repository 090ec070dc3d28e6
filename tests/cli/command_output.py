"""What commands print and write, as tests read it; and the season's Elo ratings by hand."""

import csv
import json

# Winner and loser of the season's duels d01 to d11.
DUELS = [("a", "b"), ("a", "c"), ("a", "d"), ("a", "e"), ("b", "c"), ("b", "d"), ("b", "e"), ("c", "d"), ("c", "e")]
DUELS += [("d", "e"), ("f", "a")]


def only_document(text):
    """The one JSON document that the text must be, with nothing before or after it."""
    document, end = json.JSONDecoder().raw_decode(text)
    assert text[end:] == "\n"
    return document


def read_csv(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def files_in(folder):
    return sorted(path.name for path in folder.iterdir())


def ratings(run, ladder="duel"):
    """The ratings of a ladder by player, exported to a file."""
    assert run("export", "--ratings", "ratings.csv", "--ladder", ladder).code == 0
    with open("ratings.csv", newline="", encoding="utf-8") as file:
        return {row["player"]: float(row["rating"]) for row in csv.DictReader(file)}


def rated(run, path, *more):
    """The ratings that `rate` computes from a file, by player."""
    ended = run("rate", path, "--system", "elo", "--json", *more)
    return {row["player"]: row["rating"] for row in json.loads(ended.out)["standings"]}


def held(run):
    """The numbers of matches and players of the ladder `duel`."""
    told = json.loads(run("ladder", "show", "duel", "--json").out)
    return told["matches"], told["players"]


def elo_by_hand(duels, kept=(), *, k=32.0, start=None):
    """Elo ratings after these duels; kept has (number, player) where the duel of that number leaves the loser alone."""
    rating = dict(start or {})
    for number, (winner, loser) in enumerate(duels):
        w, l_ = rating.get(winner, 1500.0), rating.get(loser, 1500.0)
        gain = k * (1 - 1 / (1 + 10 ** ((l_ - w) / 400)))
        rating[winner] = w + gain
        rating[loser] = l_ if (number, loser) in kept else l_ - gain
    return rating
