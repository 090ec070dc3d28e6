"""The languages of the web site: nothing is untranslated, and no page mixes two languages."""

import io
import re
from html import unescape
from pathlib import Path

import pytest
from babel.messages.pofile import read_po

from evenmatch.http.app import application
from evenmatch.systems import wording
from evenmatch.web import texts as module
from evenmatch.web.app import pages
from evenmatch.web.texts import Languages, Texts
from texts import template, updated
from web_client import HOSTILE, Browsing

FOLDER = Path(module.__file__).parent / "texts"
CATALOGUES = sorted(FOLDER.glob("*.po"))
LANGUAGES = [path.stem for path in CATALOGUES]
PLACEHOLDER = re.compile(r"%\(\w+\)s|%%|\{\w*\}|</?\w+")


def catalogue(path):
    return read_po(io.BytesIO(path.read_bytes()), locale=path.stem)


def forms(text):
    return (text,) if isinstance(text, str) else text


@pytest.fixture(scope="module")
def wanted():
    return template()


def test_german_and_arabic_come_with_the_site():
    assert {"de", "ar"} <= set(LANGUAGES)


@pytest.mark.parametrize("path", CATALOGUES, ids=LANGUAGES)
def test_a_catalogue_has_exactly_the_messages_of_the_site(path, wanted):
    """After a change of a text, `python tools/texts.py` brings the catalogues up to date."""
    assert path.read_bytes() == updated(path.read_bytes(), path.stem, wanted)


@pytest.mark.parametrize("path", CATALOGUES, ids=LANGUAGES)
def test_nothing_is_untranslated(path):
    missing = [one.id for one in catalogue(path) if one.id and not all(forms(one.string))]
    assert missing == []


@pytest.mark.parametrize("path", CATALOGUES, ids=LANGUAGES)
def test_no_translation_is_fuzzy(path):
    assert [one.id for one in catalogue(path) if one.id and one.fuzzy] == []


def placeholders(text):
    return sorted(PLACEHOLDER.findall(text))


@pytest.mark.parametrize("path", CATALOGUES, ids=LANGUAGES)
def test_a_translation_has_the_placeholders_elements_and_outer_spaces_of_its_message(path):
    """A form for a number such as one or two may say the number in words."""
    for one in catalogue(path):
        if not one.id:
            continue
        message = forms(one.id)[-1]
        for form in filter(None, forms(one.string)):
            given, expected = placeholders(form), placeholders(message)
            if not isinstance(one.id, str):
                given, expected = ([word for word in listed if word != "%(n)s"] for listed in (given, expected))
            assert given == expected, one.id
            assert (form[0] == " ", form[-1] == " ") == (message[0] == " ", message[-1] == " "), one.id
            assert '"' not in re.sub(r"<[^>]*>", "", form), one.id  # texts stand in attributes


@pytest.mark.parametrize("path", CATALOGUES, ids=LANGUAGES)
def test_every_plural_form_of_a_language_is_filled_or_none(path):
    for one in catalogue(path):
        if one.id and not isinstance(one.id, str):
            assert len(one.string) == catalogue(path).num_plurals, one.id
            assert all(one.string) or not any(one.string), one.id


def written(language, *messages):
    """A catalogue with these messages and translations."""
    lines = ['msgid ""', 'msgstr ""', f'"Language: {language}\\n"', '"Content-Type: text/plain; charset=utf-8\\n"']
    for singular, plural, *translations in messages:
        lines += ["", f'msgid "{singular}"', f'msgid_plural "{plural}"']
        lines += [f'msgstr[{index}] "{form}"' for index, form in enumerate(translations)]
    return "\n".join([*lines, ""]).encode()


# The six plural forms of Arabic as in CLDR: zero, one, two, few, many, other.
ARABIC = [(0, "zero"), (1, "one"), (2, "two"), (3, "few"), (10, "few"), (11, "many"), (100, "other"), (102, "other")]


@pytest.mark.parametrize(("number", "form"), ARABIC)
def test_arabic_has_six_plural_forms(number, form):
    content = written("ar", ("%(n)s match", "%(n)s matches", "zero", "one", "two", "few", "many", "other"))
    assert Texts("ar", [content]).count(number, "match", "matches") == form


@pytest.mark.parametrize(
    ("accepted", "language"),
    [
        ("", "en"),
        ("de", "de"),
        ("de-AT,en;q=0.7", "de"),
        ("en;q=0.7,ar-EG", "ar"),
        ("fr,ar;q=0.2,de;q=0.5", "de"),
        ("fr", "en"),
        ("de;q=0", "en"),
        ("de;q=x,,;;", "en"),
        ("*", "en"),
    ],
)
def test_the_language_is_the_one_that_the_browser_likes_best(accepted, language):
    assert Languages().chosen("", accepted).language == language


def test_a_folder_replaces_single_texts_and_adds_languages(tmp_path):
    (tmp_path / "de.po").write_text(
        'msgid ""\nmsgstr "Content-Type: text/plain; charset=utf-8\\n"\n\nmsgid "Log in"\nmsgstr "Hinein"\n'
    )
    (tmp_path / "sv.po").write_text(
        'msgid ""\nmsgstr "Content-Type: text/plain; charset=utf-8\\n"\n\nmsgid "Log in"\nmsgstr "Logga in"\n'
    )
    languages = Languages(str(tmp_path))
    packaged = Languages().texts("de").text("Log out")
    assert languages.texts("de").text("Log in") == "Hinein"
    assert languages.texts("de").text("Log out") == packaged
    assert languages.texts("sv").text("Log in") == "Logga in"
    assert languages.names["sv"] == "Svenska"


def test_a_choice_in_the_foot_of_a_page_outlives_the_header(anyone, league):
    assert '<html lang="en" dir="ltr"' in anyone.page("/")
    answer = anyone.post("/language", data={"language": "ar", "to": "/ladders/league"})
    assert answer.headers["location"] == "/ladders/league"
    page = anyone.get("/ladders/league", headers={"Accept-Language": "de"})
    assert '<html lang="ar" dir="rtl"' in page.text
    assert page.headers["content-language"] == "ar"
    assert "Accept-Language" in page.headers["vary"]
    assert anyone.post("/language", data={"language": "xx", "to": "/"}).status_code == 422


def test_a_page_that_one_visitor_saw_is_not_served_in_their_language_to_another(site, league):
    app = application(site, pages=pages)
    seen = {}
    for language in ("de", "ar", "en", "de"):
        visitor = Browsing(app)
        page = visitor.get("/ladders/league/players/ann", headers={"Accept-Language": language}).text
        visitor.close()
        assert f'<html lang="{language}"' in page
        assert seen.setdefault(language, page.count("<bdi")) == page.count("<bdi")


@pytest.mark.parametrize("language", LANGUAGES)
def test_names_are_isolated_from_the_text_around_them(anyone, league, language):
    page = anyone.get("/ladders/league/standings", headers={"Accept-Language": language}).text
    names = re.findall(r"<bdi[^>]*>([^<]*)</bdi>", page)
    assert "ann" in names
    assert any(unescape(name).startswith("<b>") for name in names)
    assert HOSTILE not in page


def test_the_sign_of_a_number_stays_in_front_of_it_in_arabic(anyone, league):
    page = anyone.get("/ladders/league/players/ann", headers={"Accept-Language": "ar"}).text
    assert "\u200e+16" in page.replace("\u200e+16.00", "\u200e+16")


PATHS = ("/", "/login", "/search?q=ann", "/ladders/league", "/ladders/league/standings", "/ladders/league/matches")
PLAYER = (
    "/ladders/league/players/ann",
    "/ladders/league/distribution",
    "/ladders/league/rules",
    "/ladders/league/queue",
)


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_page_shows_a_message_in_english(anyone, league, language):
    messages = {one.id for one in template() if isinstance(one.id, str) and len(one.id.split()) > 2}
    same = {one.id for one in catalogue(FOLDER / f"{language}.po") if one.id == one.string}
    for path in (*PATHS, *PLAYER):
        page = anyone.get(path, headers={"Accept-Language": language}).text
        body = re.sub(r"(?s)<(script|style)\b.*?</\1>", " ", page)
        shown = {" ".join(unescape(text).split()) for text in re.findall(r">([^<>]+)<", body)}
        assert shown & (messages - same) == set(), path


def test_every_message_of_an_explanation_is_in_the_catalogues(wanted):
    assert [message for message in wording.messages() if message not in wanted] == []
