"""evenmatch player link, unlink and login-link."""

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


def test_a_login_link_leads_to_the_site(run, league):
    ended = run("player", "login-link", "a", "--site", "https://ranks.example/")
    assert ended.out.startswith("https://ranks.example/login/link?token=ey")
    assert run("player", "login-link", "a", "--expires", "2d").code != 0  # a day at most
