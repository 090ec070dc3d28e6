"""Player names of the demo: from many countries, and some that test the escaping of the pages."""

from __future__ import annotations

import numpy as np

FIRST = (
    *("Ada", "Aiko", "Amara", "Anouk", "Aroha", "Ayşe", "Beatriz", "Björn", "Bogdan", "Chidi", "Chloé", "Dácil"),
    *("Dmitri", "Eilidh", "Elif", "Emeka", "Farid", "Fatou", "Giulia", "Håkon", "Hana", "Ines", "Ioana", "Ivo"),
    *("Jamal", "Jiří", "João", "Kaito", "Kavya", "Keanu", "Kwame", "Lars", "Leila", "Linh", "Łucja", "Luca"),
    *("Mairi", "Malik", "Marit", "Mateo", "Mei", "Milan", "Nadia", "Ngozi", "Niamh", "Noor", "Olu", "Óscar"),
    *("Pavel", "Petra", "Quân", "Rania", "Ravi", "Rosa", "Ruben", "Saoirse", "Selim", "Sigrún", "Sofía", "Soren"),
    *("Tamar", "Tane", "Thandi", "Tomás", "Ulla", "Vera", "Viktor", "Wanjiru", "Xiomara", "Yara", "Yusuf", "Zoë"),
)
LAST = ("Ash", "Bolt", "Crow", "Drift", "Echo", "Fox", "Gale", "Hawk", "Ink", "Jade", "Kite", "Lynx", "Moss", "Nova")
WHOLE = (  # names that are one word
    *("さくら", "龍之介", "민준", "지우", "Νίκος", "Ольга", "Богдана", "ליאור", "ليلى", "यश", "ธนา", "ჯაბა"),
    *("xX_sn1per_Xx", "night.owl", "404", "the_quiet_one", "GG", "mum said one more", "Dr. Lag", "potato-aim"),
)
HOSTILE = (
    "<script>alert('hi')</script>",
    '"><img src=x onerror=alert(1)>',
    "{{ 7 * 7 }}",
    "Robert'); DROP TABLE player;--",
    "\u202egnp.ladder",  # reverses the text after it
    "abc\u200f123",
    "Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢L̠ͨͧͩ͘G̴̻͈͍͔̹̑͗̎̅͛́Ǫ̵̹̻̝̳͂̌̌͘",
    "👩‍👩‍👧‍👦 family 🏳️‍🌈",
    "../../etc/passwd",
    "a/b?c=d&e#f%20g",
    "W" * 64,
    "javascript:alert(1)",
)


def player_names(count: int, rng: np.random.Generator) -> list[str]:
    """Return `count` different names in random order, including HOSTILE and WHOLE."""
    full_names = [f"{first} {last}" for first in FIRST for last in LAST]
    chosen = rng.permutation(len(full_names))[: max(count - len(WHOLE) - len(HOSTILE), 0)]
    names = [*HOSTILE, *WHOLE, *(full_names[index] for index in chosen)][:count]
    return [names[index] for index in rng.permutation(len(names))]
