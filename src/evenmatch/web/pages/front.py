"""The front page with the visitor's cards and friends, the ladders of a player, and the search over all ladders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from starlette.responses import Response

from evenmatch.durations import DAY
from evenmatch.errors import UnknownNameError, UsageError
from evenmatch.ladders.ladder_queries import contains
from evenmatch.ladders.standings import View
from evenmatch.players.placement import why_nobody
from evenmatch.players.rating_path import RatingPath
from evenmatch.sentences import Sentence
from evenmatch.standings.bands import DivisionProgress, division_progress
from evenmatch.standings.board import Standing
from evenmatch.web.page_request import LANGUAGE, LONGEST_NAME, ME, THEME, THEMES, PageRequest, address, local
from evenmatch.web.svg_charts import sparkline
from evenmatch.web.view_models import LETTERS, LadderShown, MatchResult

RECENT = 200  # latest matches that a card is drawn from
FORM, DRAWN = 6, 30  # latest results, and matches of the line, on a card
FOUND = 20  # players found by a search
FRIENDS_AT_MOST = 20


class PlayerCard(NamedTuple):
    """A player's standing on a ladder.

    week   the change of the rating in seven days; None: no match, or not shown
    form   the latest results, latest first;  spark  the corners of a line over the latest levels; empty: too few
    """

    ladder: LadderShown
    standing: Standing
    listed: int
    way: DivisionProgress | None
    week: float | None
    form: Sequence[MatchResult]
    spark: str
    waiting: int | None


class LadderCard(NamedTuple):
    """A ladder in the list; `best`: the first three players with their standings."""

    ladder: LadderShown
    players: int
    matches: int
    best: Sequence[tuple[str, Standing]]
    why_nobody: Sentence | None
    waiting: int | None


class Found(NamedTuple):
    """A player with the ladders they are on, and their standings there."""

    player: str
    on: Sequence[tuple[LadderShown, Standing]]


async def front(visit: PageRequest) -> Response:
    """Show the visitor's cards and friends, and all ladders that the visitor may read."""
    return await visit.show("front", lambda: _front(visit))


def _front(visit: PageRequest) -> Mapping[str, object]:
    views = _views(visit)
    cards = [_ladder_card(visit, view) for view in views]
    return {
        "cards": sorted(cards, key=lambda card: card.ladder.archived),
        "mine": [] if visit.me is None else _player_cards(visit, views, visit.me),
        "friends": _standings_of(visit, views, visit.friends),
    }


def _views(visit: PageRequest) -> list[View]:
    """The standings of all ladders that the visitor may read."""
    return [visit.reading.view(name) for name in visit.readable()]


def _ladder_card(visit: PageRequest, view: View) -> LadderCard:
    best = visit.site.service.named(view.snapshot.page(1, 3)) if len(view.snapshot) else []
    return LadderCard(
        LadderShown.of(view),
        len(view.snapshot.board),
        visit.reading.described(view.head.name).matches,
        best,
        why_nobody(view),
        waiting_in(visit, view.head.name),
    )


def waiting_in(visit: PageRequest, ladder: str) -> int | None:
    """Return the number of players in the queues of a ladder; None if it has no queue."""
    counts = visit.site.queue_service.counts(ladder)
    return sum(count.players for count in counts.values()) if counts else None


def _player_cards(visit: PageRequest, views: Sequence[View], name: str) -> list[PlayerCard]:
    """The cards of a player, one for each ladder; those on which the player is listed come first."""
    try:
        player = visit.site.service.player(name)
    except UnknownNameError:
        return []
    standings = [(view, view.snapshot.standing(player)) for view in views]
    cards = [_player_card(visit, view, name, standing) for view, standing in standings if standing is not None]
    return sorted(cards, key=lambda card: (card.ladder.archived, card.standing.rank is None))


def _player_card(visit: PageRequest, view: View, name: str, standing: Standing) -> PlayerCard:
    ladder = view.head.name
    _, path = visit.reading.path(ladder, name, latest=RECENT)
    week = path.moved_since(visit.site.service.clock() - 7 * DAY)
    way = None if standing.rank is None else division_progress(view.snapshot, standing.rating, standing.percentile)
    return PlayerCard(
        LadderShown.of(view),
        standing,
        len(view.snapshot),
        way,
        week,
        [MatchResult(step.match_id, step.word, LETTERS[step.word], step.word) for step in path.steps[: -FORM - 1 : -1]],
        sparkline(_levels(path)[-DRAWN:]),
        waiting_in(visit, ladder),
    )


def _levels(path: RatingPath) -> list[float]:
    """The ratings of a path, or the percentiles where ratings are not shown."""
    levels = [step.percentile if step.after is None else step.after for step in path.steps]
    return [float(level) for level in levels if level is not None]


def _standings_of(visit: PageRequest, views: Sequence[View], names: Sequence[str]) -> list[Found]:
    """These players with their ladders, in this order; the highest place on a ladder comes first."""
    on: dict[str, list[tuple[LadderShown, Standing]]] = {name: [] for name in names}
    for view in views if names else ():
        rows, _ = visit.reading.among(view.head.name, names)
        ladder = LadderShown.of(view)
        for name, standing in rows:
            on.setdefault(name, []).append((ladder, standing))
    return [
        Found(name, sorted(places, key=lambda place: place[1].percentile or 0, reverse=True))
        for name, places in on.items()
    ]


async def ladders_of(visit: PageRequest) -> Response:
    """Show a player's cards of all ladders."""
    name = visit.part("player")
    visit.check_own(name)

    def make() -> Mapping[str, object]:
        cards = _player_cards(visit, _views(visit), name)
        if not cards:
            raise UnknownNameError("player", name, ())
        return {"player": name, "mine": cards}

    return await visit.show("player_ladders", make)


async def search(visit: PageRequest) -> Response:
    """Show ladders and players whose names contain a text, ignoring case and diacritics."""
    return await visit.show("search", lambda: _search(visit))


def _search(visit: PageRequest) -> Mapping[str, object]:
    text = visit.asked("q").strip()[:LONGEST_NAME]
    views = _views(visit)
    if not text:
        return {"text": text, "ladders": [], "players": [], "similar": [], "banned": []}
    ladders = [LadderShown.of(view) for view in views]
    names = visit.reading.search(text, FOUND, [ladder.name for ladder in ladders])
    similar = [] if names else [name for ladder in ladders for name in visit.reading.similar(ladder.name, text)]
    return {
        "text": text,
        "ladders": [ladder for ladder in ladders if contains(ladder.title, text) or contains(ladder.name, text)],
        "players": _standings_of(visit, views, names),
        "similar": list(dict.fromkeys(similar))[:3],
        "banned": [] if names else [ladder for ladder in ladders if _is_banned(visit, ladder.name, text)],
        "is_cut": len(names) >= FOUND,
    }


def _is_banned(visit: PageRequest, ladder: str, name: str) -> bool:
    """Whether a ladder's operator looks for a player who is banned from it."""
    if not visit.may("admin", ladder):
        return False
    try:
        return visit.reading.profile(ladder, name).banned
    except UnknownNameError:
        return False


async def set_me(visit: PageRequest) -> Response:
    """Store the name of the visitor, who chose one of the players found."""
    form = await visit.form()
    name = form.get("player", "").strip()
    if not 0 < len(name) <= LONGEST_NAME:
        raise UsageError(visit.text("Enter a name of 1 to %(most)s letters.", most=LONGEST_NAME))
    response = visit.go("/")
    visit.remember(response, name)
    return response


async def forget_me(visit: PageRequest) -> Response:
    """Delete the cookie with the visitor's player name."""
    await visit.form()
    response = visit.go("/", visit.text("This site has forgotten your name."))
    visit.cookies.delete(response, ME)
    return response


async def set_language(visit: PageRequest) -> Response:
    """Store the language that the visitor chose for the pages of this site."""
    form = await visit.form()
    language = form.get("language", "")
    if language not in visit.shared.languages.names:
        raise UsageError(f"language is {language[:20]!r}; expected {', '.join(visit.shared.languages.names)}")
    response = visit.go(local(form.get("to", "")) or "/")
    visit.cookies.write(response, LANGUAGE, language)
    return response


async def set_theme(visit: PageRequest) -> Response:
    """Store the visitor's choice of light or dark colours; any other choice follows the system."""
    form = await visit.form()
    theme, response = form.get("theme"), visit.go(local(form.get("to", "")) or "/")
    if theme in THEMES:
        visit.cookies.write(response, THEME, theme)
    else:
        visit.cookies.delete(response, THEME)
    return response


async def change_friends(visit: PageRequest) -> Response:
    """Add a player to the friends whom this browser remembers, or remove one."""
    form = await visit.form()
    name, to = form.get("player", "").strip(), local(form.get("to", "")) or "/"
    others = [friend for friend in visit.friends if friend != name]
    if form.get("do") == "remove":
        response = visit.go(to, visit.text("%(name)s is no longer in your list of friends.", name=name))
        visit.remember_friends(response, others)
        return response
    found = await visit.site.work(_called, visit, name)
    if len(found) != 1:
        return visit.go(address("search", q=name))
    if len(others) >= FRIENDS_AT_MOST:
        return visit.go(
            to, visit.text("Your list is full: it holds %(most)s friends.", most=FRIENDS_AT_MOST), is_good=False
        )
    response = visit.go(to, visit.text("%(name)s is in your list of friends.", name=found[0]))
    visit.remember_friends(response, [friend for friend in visit.friends if friend != found[0]] + found)
    return response


def _called(visit: PageRequest, name: str) -> list[str]:
    return visit.reading.called(name, visit.readable())
