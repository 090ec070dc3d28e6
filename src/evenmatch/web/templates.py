"""Rendering of the HTML templates with autoescaping, and the template filters for names, numbers and times."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import lru_cache
from importlib import resources

import jinja2
from markupsafe import Markup

from evenmatch.lab.safe_names import plain, visible
from evenmatch.times import iso_time

Values = Mapping[str, object]
LONGEST = 60  # characters of a name
MINUS = re.compile(r"(?<![\w.-])-(?=\d)")
MINUTE, HOUR, DAY = 60, 3600, 86_400
EXACT = 20  # minutes up to which seconds are shown


def render(template: str, values: Values) -> str:
    """Render a template with these values."""
    return _environment().get_template(f"{template}.html.jinja").render(values)


@lru_cache(1)
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_source),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters |= {
        "plain": plain,
        "name": name,
        "number": number,
        "signed": signed,
        "direction": direction,
        "count": count,
        "percent": percent,
        "seconds": seconds,
        "moment": moment,
        "sentence": sentence,
        "ago": ago,
    }
    return environment


def _source(path: str) -> str | None:
    try:
        return resources.files("evenmatch.web").joinpath("templates", path).read_text("utf-8")
    except FileNotFoundError:
        return None


def name(text: str, longest: int = LONGEST) -> Markup:
    """A user-supplied name, bidi-isolated and shortened; the title attribute holds a longer one in full."""
    shown = visible(text, longest)
    title = Markup(' title="{}"').format(plain(text)) if len(text) > longest else Markup()
    return Markup("<bdi{}>{}</bdi>").format(title, shown)


def number(value: float | None, digits: int | None = None) -> str:
    """A formatted number; without `digits`, 0 to 2 decimals depending on its size."""
    if value is None or not math.isfinite(value):
        return "–"
    if digits is None:
        size = abs(value)
        digits = 0 if size >= 1000 else 1 if size >= 100 else 2
    return f"{value:,.{digits}f}".replace("-", "−")


def signed(value: float | None, digits: int | None = None) -> str:
    """A rating change with its sign."""
    if value is None or not math.isfinite(value):
        return "–"
    if digits is None:
        digits = 1 if abs(value) >= 10 else 2
    text = f"{value:+,.{digits}f}"
    return "±0" if float(text.replace(",", "")) == 0 else text.replace("-", "−")


def direction(shown: str) -> str:
    """The CSS class of a change as `signed` shows it: up, down, or none for ±0."""
    return {"+": "up", "−": "down"}.get(shown[:1], "")


def count(value: float, noun: str = "", plural: str = "") -> str:
    """A count with its noun: 1 match, 2,000 matches."""
    if not noun:
        return f"{value:,.0f}"
    return f"{value:,.0f} {noun if value == 1 else plural or noun + 's'}"


def percent(share: float | None, digits: int = 0) -> str:
    """A share, 0..1, as percent."""
    return "–" if share is None or not math.isfinite(share) else f"{100 * share:.{digits}f} %"


def seconds(value: float | None) -> str:
    """A duration: 12 s, 4 min 2 s, 25 min, 3 h."""
    if value is None or not math.isfinite(value):
        return "–"
    if round(value) < 2 * MINUTE:
        return f"{value:.0f} s"
    if round(value) < EXACT * MINUTE:
        minutes, rest = divmod(round(value), MINUTE)
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    return roughly(value)


def roughly(value: float) -> str:
    """A duration in one unit: 12 s, 4 min, 3 h. Keep it equal to `roughly` in evenmatch.js."""
    if value < 2 * MINUTE:
        return f"{value:.0f} s"
    if value < 2 * HOUR:
        return f"{value / MINUTE:.0f} min"
    return f"{value / HOUR:.0f} h" if value < 2 * DAY else f"{value / DAY:.0f} days"


def sentence(text: str) -> str:
    """The text with a capital first letter, and a typographic minus in negative numbers."""
    return MINUS.sub("−", f"{text[:1].upper()}{text[1:]}")


def moment(micros: int | None) -> Markup:
    """A time as an HTML `time` element, in UTC; `micros`: microseconds since the epoch."""
    if micros is None:
        return Markup("–")
    text = iso_time(micros)
    return Markup('<time datetime="{}">{} {}</time>').format(text, text[:10], text[11:16])


def ago(micros: int | None, now: int) -> Markup:
    """The time that has passed since `micros`, as a `time` element with the exact time in its title."""
    if micros is None:
        return Markup("–")
    text, passed = iso_time(micros), (now - micros) / 1e6
    words = "just now" if abs(passed) < MINUTE else f"{roughly(passed)} ago" if passed > 0 else f"in {roughly(-passed)}"
    exact = text[:16].replace("T", " ")
    return Markup('<time datetime="{}" title="{} UTC" data-ago>{}</time>').format(text, exact, words)
