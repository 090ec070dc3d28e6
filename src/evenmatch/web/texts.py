"""The languages of the web site: their catalogues, the visitor's choice, and what else differs between languages.

English texts are the message ids. A catalogue is a gettext file, LANGUAGE.po, in the folder `texts` of this package. A
file of the same name in the folder of the setting EVENMATCH_TEXTS adds a language, or replaces single texts of one.
"""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from datetime import datetime
from functools import cached_property
from gettext import GNUTranslations, NullTranslations
from importlib import resources
from pathlib import Path
from types import MappingProxyType

from babel import Locale, negotiate_locale
from babel.dates import format_date
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from markupsafe import Markup

from evenmatch.sentences import Sentence
from evenmatch.systems.system import RATING_DECIMALS
from evenmatch.systems.wording import ordinal
from evenmatch.times import iso_time

ENGLISH = "en"
MINUTE, HOUR, DAY = 60, 3600, 86_400
MINUS = re.compile(r"(?<![\w.-])-(?=\d)")
EXACT = 20  # minutes: shorter durations show seconds
SAMPLES = range(200)  # numbers that have every plural form of every language
LEFT_TO_RIGHT = "\u200e"  # keeps a sign in front of its number in a text that runs from right to left


SEPARATORS = re.compile("[,.' ’\u00a0\u202f\u066c]?[.,\u066b]")  # between groups of digits, and before decimals
_separators: ContextVar[Mapping[int, str]] = ContextVar(
    "separators", default=MappingProxyType({ord("-"): "−"})
)  # replace those of English


def use_separators(text: str, texts: Texts) -> None:
    """Format the numbers of this page with the separators in a NUMBERS cookie, such as `.,`; else as in its language.

    In a text that runs from right to left, a mark keeps the sign in front of its number.
    """
    given = text if SEPARATORS.fullmatch(text) and len(set(text)) == len(text) else texts.separators
    mark = "" if texts.direction == "ltr" else LEFT_TO_RIGHT
    _separators.set({ord(","): given[:-1], ord("."): given[-1], ord("-"): f"{mark}−", ord("+"): f"{mark}+"})


def _formatted(value: float, form: str) -> str:
    return format(value, form).translate(_separators.get())


def number(value: float | None, digits: int | None = None) -> str:
    """A formatted number; without `digits`, 0 to 2 decimals depending on its size."""
    if value is None or not math.isfinite(value):
        return "–"
    if digits is None:
        size = abs(value)
        digits = 0 if size >= 1000 else 1 if size >= 100 else 2
    return _formatted(value, f",.{digits}f")


def signed(value: float | None, digits: int = RATING_DECIMALS) -> str:
    """A rating change with its sign."""
    if value is None or not math.isfinite(value):
        return "–"
    return "±0" if round(value, digits) == 0 else _formatted(value, f"+,.{digits}f")


def direction(shown: str) -> str:
    """The CSS class of a change formatted by `signed`: up, down, or none for ±0."""
    return {"+": "up", "−": "down"}.get(shown.lstrip(LEFT_TO_RIGHT)[:1], "")


def percent(share: float | None, digits: int = 0) -> str:
    """A share, 0..1, as percent."""
    return "–" if share is None or not math.isfinite(share) else f"{_formatted(100 * share, f'.{digits}f')} %"


def sentence(text: str) -> str:
    """The text with a capital first letter, and a typographic minus in negative numbers."""
    return MINUS.sub("−", f"{text[:1].upper()}{text[1:]}")


def moment(micros: int | None) -> Markup:
    """A time as an HTML `time` element, in UTC; `micros`: microseconds since the epoch."""
    if micros is None:
        return Markup("–")
    text = iso_time(micros)
    return Markup('<time datetime="{}">{} {}</time>').format(text, text[:10], text[11:16])


class Texts:
    """The texts of one language, and its formats of durations and counts.

    language   its code, such as `de`;  direction: `ltr` or `rtl`
    separators  between groups of digits and before decimals
    """

    def __init__(self, language: str, catalogues: Sequence[bytes] = ()) -> None:
        locale = Locale.parse(language, sep="-")
        symbols = locale.number_symbols["latn"]
        self.language, self.direction = language, locale.text_direction
        self.own_name = (locale.get_display_name() or language).capitalize()
        self.separators = symbols["group"] + symbols["decimal"]
        self._locale = locale
        self.translations: NullTranslations = NullTranslations()
        for content in catalogues:  # later ones take precedence
            compiled = io.BytesIO()
            write_mo(compiled, read_po(io.BytesIO(content), locale=language.replace("-", "_")))
            compiled.seek(0)
            loaded = GNUTranslations(compiled)
            loaded.add_fallback(self.translations)
            self.translations = loaded

    def text(self, message: str, **values: object) -> str:
        """Return a text of the pages in this language. values: of its placeholders, such as `%(name)s`."""
        return self.translations.gettext(message) % values

    def translated(self, message: str) -> str:
        """Return a text without placeholders in this language, as it is if there is no translation."""
        return self.translations.gettext(message) if message else message

    def said(self, sentence: Sentence) -> str:
        """Return a sentence of the layers below in this language."""
        return sentence.said(self.translated)

    def plural(self, singular: str, plural: str, number: float, **values: object) -> str:
        """Return a text in the form for this number, whose placeholder is `%(n)s`."""
        return self.translations.ngettext(singular, plural, round(number)) % {"n": _formatted(number, ",.0f"), **values}

    def count(self, value: float, noun: str = "", plural: str = "") -> str:
        """A count with its noun: 1 match, 2,000 matches."""
        if not noun:
            return _formatted(value, ",.0f")
        forms = f"%(n)s {noun}", f"%(n)s {plural or noun + 's'}"
        return self.plural(*forms, value)

    def seconds(self, value: float | None) -> str:
        """A duration: 12 s, 4 min 2 s, 25 min, 3 h."""
        if value is None or not math.isfinite(value):
            return "–"
        if 2 * MINUTE <= round(value) < EXACT * MINUTE:
            minutes, rest = divmod(round(value), MINUTE)
            if rest:
                return self.text("%(minutes)s min %(seconds)s s", minutes=minutes, seconds=rest)
        return self._roughly(value)

    def _roughly(self, value: float) -> str:
        """A duration in one unit: 12 s, 4 min, 3 h. Keep it equal to `roughly` in evenmatch.js."""
        if round(value) < 2 * MINUTE:
            return self.text("%(n)s s", n=round(value))
        if value < 2 * HOUR:
            return self.text("%(n)s min", n=round(value / MINUTE))
        if value < 2 * DAY:
            return self.text("%(n)s h", n=round(value / HOUR))
        return self.plural("%(n)s day", "%(n)s days", value / DAY)

    def ago(self, micros: int | None, now: int) -> Markup:
        """The time since `micros` as a `time` element with the exact time in its title."""
        if micros is None:
            return Markup("–")
        text, passed = iso_time(micros), (now - micros) / 1e6
        if abs(passed) < MINUTE:
            words = self.text("just now")
        elif passed > 0:
            words = self.text("%(time)s ago", time=self._roughly(passed))
        else:
            words = self.text("in %(time)s", time=self._roughly(-passed))
        exact = text[:16].replace("T", " ")
        return Markup('<time datetime="{}" title="{} UTC" data-ago>{}</time>').format(text, exact, words)

    def day(self, moment: datetime, *, year: bool = False) -> str:
        """A day such as 3 Nov, or 3 Nov 2026."""
        values = {"day": moment.day, "month": self.month(moment), "year": moment.year}
        return self.text("%(day)s %(month)s %(year)s" if year else "%(day)s %(month)s", **values)

    def month(self, moment: datetime) -> str:
        """The short name of a month, such as Nov."""
        return format_date(moment, "LLL", self._locale)

    def ordinal(self, place: int) -> str:
        """A place: 1st, 2nd."""
        return ordinal(place, self.translated)

    @cached_property
    def of_script(self) -> str:
        """The texts of evenmatch.js as JSON; those with a number by plural category."""
        messages = {
            "now": self.text("just now"),
            "ago": self.text("%(time)s ago", time="{}"),
            "in": self.text("in %(time)s", time="{}"),
            "s": self.text("%(n)s s", n="{}"),
            "min": self.text("%(n)s min", n="{}"),
            "h": self.text("%(n)s h", n="{}"),
            "days": self._forms("%(n)s day", "%(n)s days"),
            "show": self._forms("Show %(n)s new match", "Show %(n)s new matches"),
            "silent": self.text("The service did not respond."),
        }
        return json.dumps(messages, ensure_ascii=False)

    def _forms(self, singular: str, plural: str) -> dict[str, str]:
        forms = self.translations.ngettext
        return {self._locale.plural_form(n): forms(singular, plural, n) % {"n": "{}"} for n in SAMPLES}


class Languages:
    """The languages of a site. folder: with catalogues of its own; empty: none. Each is read on first use."""

    def __init__(self, folder: str = "") -> None:
        packaged = resources.files("evenmatch.web").joinpath("texts")
        own = list(Path(folder).iterdir()) if folder else []
        self._files: dict[str, list[Path]] = {ENGLISH: []}
        for file in [*(Path(str(entry)) for entry in packaged.iterdir()), *own]:
            if file.suffix == ".po":
                self._files.setdefault(file.stem, []).append(file)
        self._loaded: dict[str, Texts] = {}

    @cached_property
    def names(self) -> dict[str, str]:
        """The languages and what each calls itself."""
        return {language: Texts(language).own_name for language in self._files}

    def texts(self, language: str) -> Texts:
        """Return the texts of a language of this site."""
        if language not in self._loaded:
            self._loaded[language] = Texts(language, [file.read_bytes() for file in self._files[language]])
        return self._loaded[language]

    def chosen(self, choice: str, accepted: str) -> Texts:
        """Return the texts for a visitor. choice: a language, or empty; accepted: the header Accept-Language."""
        if choice not in self._files:
            choice = negotiate_locale(_by_preference(accepted), list(self._files), sep="-") or ENGLISH
        return self.texts(choice)


def _by_preference(accepted: str) -> list[str]:
    """The languages of a header Accept-Language, best first."""
    weighed = []
    for part in accepted[:1000].split(","):
        language, _, weight = part.partition(";q=")
        try:
            weighed.append((-float(weight or 1), language.strip()))
        except ValueError:
            continue
    return [language for weight, language in sorted(weighed, key=lambda pair: pair[0]) if weight < 0 and language]
