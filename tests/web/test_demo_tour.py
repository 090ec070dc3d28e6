"""The front page of the demo says where to click."""

import re

import pytest

from evenmatch.http.app import application
from evenmatch.web.app import pages
from web_client import Browsing


@pytest.fixture
def demo(site):
    browsing = Browsing(application(site, pages=lambda of: pages(of, is_demo=True)))
    yield browsing
    browsing.close()


def test_the_front_page_of_the_demo_names_five_places_and_each_is_there(demo, league, site):
    site.queue_service.set_queue(league, "main", {"team_size": 1})
    tour = re.search(r'(?s)<section class="card" id="tour".*?</section>', demo.page("/"))[0]
    places = re.findall(r'href="([^"]+)"', tour)
    assert len(places) == 5
    for place in places:
        demo.page(place)


def test_no_other_site_shows_the_tour(anyone, league):
    assert 'id="tour"' not in anyone.page("/")
