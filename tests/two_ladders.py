"""Two ladders, of which a visitor of the first must learn nothing of the second."""

import re
from dataclasses import replace

from ledger.sample_matches import duel

HIDDEN = re.compile(r"quill|zq-|zeta|Hidden cup")  # in all that exists on the second ladder alone
QUEUE = {"policy": {"team_size": 1, "max_odds": "none", "roles": {}}, "rules": {"heartbeat": None}}


def make_two_ladders(service, admin):
    """Make the ladders; return the ids of a job and a webhook of the second one, and of a ticket of the first.

    admin  asks with a key that may do everything
    """
    for ladder, title in (("alpha", "Open"), ("zeta-hidden", "Hidden cup")):
        admin.post("/v1/ladders", json={"name": ladder, "system": "elo", "settings": {"title": title}})
    service.record(duel(1, "ann", "bob", "alpha"))
    service.record(duel(2, "wanderer", "bob", "alpha"))
    zeta = "/v1/ladders/zeta-hidden"
    for number in range(12):
        pair = (f"quill-{number}", "wanderer" if number % 2 else "quill-before-ann")
        service.record(replace(duel(number, *pair, "zeta-hidden"), id=f"zq-match-{number}"))
    service.merge("quill-before-ann", "ann")
    service.rename("wanderer", "rover")
    admin.put("/v1/ladders/alpha/queues/main", json=QUEUE)
    admin.put(f"{zeta}/queues/zq-queue", json=QUEUE)
    admin.put(f"{zeta}/live/zq-live", json={"teams": [{"players": ["quill-8"]}, {"players": ["rover"]}]})
    party = {"members": [{"player": "nomad"}], "queues": ["main"], "playlist": {"zeta-hidden": ["zq-queue"]}}
    joined = admin.post("/v1/ladders/alpha/tickets", json=party)
    assert joined.status_code == 201, joined.text
    admin.post(f"{zeta}/bans", json={"player": "quill-9", "reason": "quill reason"})
    admin.post(f"{zeta}/seasons", json={"title": "Season of quills"})
    hook = {"url": "https://93.184.216.34/zq-hook", "events": ["match.rated"], "ladder": "zeta-hidden"}
    webhook = admin.post("/v1/webhooks", json=hook).json()["webhook"]
    job = admin.post(f"{zeta}/verify").json()["job"]
    assert admin.get(f"/v1/jobs/{job}", params={"wait": 30}).json()["state"] == "done"
    return {"job": job, "webhook": webhook, "ticket": joined.json()["ticket"]}
