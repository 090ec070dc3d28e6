"""Sentences for players: English by default, and in another language before their values are inserted."""

from evenmatch.sentences import Sentence

GERMAN = {"{n} players": "{n} Spieler", "of {players}, none plays": "keiner spielt von {players}"}


def test_a_sentence_is_translated_together_with_the_sentences_in_it():
    told = Sentence("of {players}, none plays", {"players": Sentence("{n} players", {"n": "2,000"})})
    assert str(told) == "of 2,000 players, none plays"
    assert told.said(GERMAN.__getitem__) == "keiner spielt von 2,000 Spieler"


def test_braces_in_a_value_are_no_placeholders():
    told = Sentence("{n} players", {"n": "{n} {0}"})
    assert told.said(GERMAN.__getitem__) == "{n} {0} Spieler"
