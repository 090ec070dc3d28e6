"""evenmatch player link and unlink."""

import json

STEAM = ("steam", "76561197960287930")


def test_an_operator_links_and_unlinks_an_account(run, league):
    ended = run("player", "link", "a", *STEAM)
    assert ended.out == "the account 76561197960287930 of steam now logs in as a\n"
    told = json.loads(run("player", "link", "a", *STEAM, "--json").out)
    assert (told["player"], told["issuer"], told["subject"]) == ("a", *STEAM)
    refused = run("player", "link", "b", *STEAM)
    assert refused.code != 0
    assert "is linked to 'a'; unlink it first" in refused.err
    assert run("player", "unlink", "a", *STEAM).out.startswith("the account 76561197960287930 of steam is no longer")
    assert run("player", "unlink", "a", *STEAM).code != 0
