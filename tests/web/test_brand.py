"""Name, accent colour and logo of an installation, and the colour of a ladder."""

import re
from importlib import resources
from itertools import product

import numpy as np
import pytest

from evenmatch.errors import BadParameterError, UsageError
from evenmatch.http.app import application
from evenmatch.http.options import LARGEST_LOGO, Options, read_options
from evenmatch.http.server import site_over
from evenmatch.ladders.settings import Settings
from evenmatch.web.app import pages
from web_client import Browsing

LOGO = b'<svg xmlns="http://www.w3.org/2000/svg"/>'


@pytest.fixture
def options(tmp_path):
    (tmp_path / "logo.svg").write_bytes(LOGO)
    own = {"site_name": "Rank & File", "accent": "#ff0000", "logo": str(tmp_path / "logo.svg")}
    return Options(matchmaker=False, open_reads=True, open_rate=10_000, open_burst=10_000, **own)


def test_every_page_has_the_name_the_accent_and_the_logo_of_the_installation(anyone, league):
    for path in ("/", "/login", f"/ladders/{league}/standings", "/nothing"):
        page = anyone.get(path).text
        assert re.search(r"<title>[^<]+ · Rank &amp; File</title>", page), path
        assert '<html lang="en" dir="ltr" style="--accent:#ff0000">' in page, path
        assert 'aria-label="Rank &amp; File, home"' in page, path
    logo = anyone.get(re.search(r'<img src="([^"]+)"', page)[1])
    assert (logo.content, logo.headers["content-type"]) == (LOGO, "image/svg+xml")


def test_a_site_without_a_logo_serves_none(service, league):
    site = site_over(service, Options(matchmaker=False, open_reads=True))
    browsing = Browsing(application(site, pages=pages))
    assert browsing.get("/assets/x/logo").status_code == 404
    assert "--accent" not in browsing.page("/")
    browsing.close()
    site.close()


def test_a_ladder_may_have_its_own_colour(anyone, league, service):
    service.change_settings(league, {"colour": "#00ff00"})
    service.view(league)
    assert 'style="--accent:#00ff00"' in anyone.page(f"/ladders/{league}")
    assert 'style="--accent:#ff0000"' in anyone.page("/")


@pytest.mark.parametrize("colour", ["red", "#12345", "#12345g", "#fff;}", "12345678"])
def test_a_colour_that_is_none_is_refused_with_what_was_expected(colour):
    expected = r"expected # and six hexadecimal digits, such as #2a7de1, got '"
    with pytest.raises(UsageError, match=f"EVENMATCH_ACCENT is .*{expected}|--accent is .*{expected}"):
        read_options({"accent": colour})
    with pytest.raises(BadParameterError, match=f"colour: {expected}"):
        Settings(colour=colour)


def test_a_logo_that_no_page_could_show_is_refused(tmp_path):
    (tmp_path / "large.png").write_bytes(bytes(LARGEST_LOGO + 1))
    (tmp_path / "logo.txt").write_text("logo")
    for name, told in [
        ("large.png", "larger than 100,000 bytes"),
        ("logo.txt", r"ends in \.svg"),
        ("none.svg", "no such file"),
    ]:
        with pytest.raises(UsageError, match=told):
            read_options({"logo": str(tmp_path / name)})


# Björn Ottosson, "A perceptual color space for image processing", https://bottosson.github.io/posts/oklab/
TO_LMS = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
TO_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


def linear(channels):
    """Linear sRGB (…, 3) from channels 0..1."""
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def luminance(light):
    return light @ np.array([0.2126, 0.7152, 0.0722])


def contrast(light, ground):
    """The contrast of WCAG 2.1 between linear sRGB colours (N, 3) and a ground written as #rrggbb."""
    channels = np.array([int(ground[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    one, other = luminance(light), luminance(linear(channels))
    return (np.maximum(one, other) + 0.05) / (np.minimum(one, other) + 0.05)


def at_lightness(accents, lightness, chroma=1.0):
    """What `oklch(from accent lightness calc(c * chroma) h)` gives, clipped as browsers do, in linear sRGB (N, 3)."""
    lab = np.cbrt(linear(accents) @ TO_LMS.T) @ TO_LAB.T
    lab = np.column_stack([np.full(len(lab), lightness), chroma * lab[:, 1:]])
    return np.clip((lab @ np.linalg.inv(TO_LAB).T) ** 3 @ np.linalg.inv(TO_LMS).T, 0, 1)


def test_links_and_buttons_are_readable_in_any_accent():
    css = resources.files("evenmatch.web").joinpath("static", "evenmatch.css").read_text("utf-8")
    fill = float(re.search(r"--fill: ?oklch\(from var\(--accent\) (\S+) c h\)", css)[1])
    of_accent = r"oklch\(from var\(--accent\) (\S+) "
    link = rf"--link: ?light-dark\({of_accent}c h\), {of_accent}calc\(c \* (\S+)\) h\)\)"
    light, dark, chroma = map(float, re.search(link, css).groups())
    grounds = {
        name: re.search(rf"--{name}: ?light-dark\((#\w+), (#\w+)\)", css).groups() for name in ("ground", "raised")
    }
    accents = np.array(list(product(np.linspace(0, 1, 18), repeat=3)))
    assert contrast(at_lightness(accents, fill), "#ffffff").min() > 4.5
    for in_light, in_dark in grounds.values():
        assert contrast(at_lightness(accents, light), in_light).min() > 4.5
        assert contrast(at_lightness(accents, dark, chroma), in_dark).min() > 4.5
