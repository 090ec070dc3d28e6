"""The file of a German community: 3,000 matches of six against six, with twelve kinds of broken rows."""

import random
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

BERLIN = ZoneInfo("Europe/Berlin")
HEAD = ("Spiel", "Datum", "Seite", "Spieler", "Ergebnis", "Punkte", "Map", "Minuten")
MATCHES = 3000


def write_trial(path, *, words="SNU"):
    """Write the file; returns the matches without a broken row as (id, time, winner's side or None, players by side).

    words  of a victory, a defeat and a draw
    """
    draw = random.Random(43)
    win, loss, tie = words
    start = datetime(2026, 1, 5, 19, 10, tzinfo=BERLIN)
    names = [f"Spieler{number:03}" for number in range(240)] + ["Jörg", "Zoë", "Łukasz", "Ann"]
    whole, lines = [], []
    for number in range(MATCHES):
        match_id = f"S{number + 1:05}"
        when = start + timedelta(minutes=17 * number)
        players = draw.sample(names, 12)
        winner = draw.choice(["rot", "blau", "rot", "blau", None])
        minutes = f"{draw.randrange(200, 450) / 10:.1f}".replace(".", ",")
        rows = []
        for place, player in enumerate(players):
            side = "rot" if place < 6 else "blau"
            word = tie if winner is None else win if side == winner else loss
            points = f"{draw.randrange(0, 400) / 10:.1f}".replace(".", ",")
            rows.append([match_id, f"{when:%d.%m.%Y %H:%M}", side, player, word, points, "Dorf", minutes])
        if number % 100 == 99 and number < 2400:
            BROKEN[number // 100 % len(BROKEN)](rows)
        else:
            whole.append((match_id, when, winner, {"rot": players[:6], "blau": players[6:]}))
        lines += [";".join(row) for row in rows]
    text = "\r\n".join([";".join(HEAD), *lines, ""])
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    return whole


def _cell(row, column, value):
    def break_it(rows):
        rows[row][HEAD.index(column)] = value

    return break_it


def _two_cells(rows):
    rows[3].append("x")


def _one_cell_less(rows):
    rows[4].pop()


def _twice(rows):
    rows[2][3] = rows[1][3]


def _one_side(rows):
    del rows[6:]


def _all_won(rows):
    for row in rows:
        row[4] = rows[0][4]
    if rows[0][4] in "UD":
        rows[0][4] = "S"


BROKEN = [
    _cell(0, "Datum", "31.02.2026 19:10"),
    _cell(1, "Datum", ""),
    _cell(2, "Spieler", ""),
    _cell(3, "Ergebnis", "vielleicht"),
    _cell(4, "Punkte", "viele"),
    _cell(5, "Minuten", "kurz"),
    _two_cells,
    _one_cell_less,
    _twice,
    _one_side,
    _all_won,
    _cell(7, "Seite", ""),
]
