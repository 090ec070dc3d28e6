"""Reports that another process records: what goes over the wire, who may speak, and who records what."""

import asyncio
from contextlib import asynccontextmanager, suppress

import pytest

from evenmatch import rules
from evenmatch.errors import BadRowsError, ConflictError, SecretError
from evenmatch.http.receipt_json import encoded, rendered
from evenmatch.match import Match
from evenmatch.service.hand_over import messages
from evenmatch.service.hand_over.connection import PeerConnection
from evenmatch.service.hand_over.fellow_processes import PATIENCE, Fellow, FellowProcesses
from evenmatch.service.match_limits import MatchLimits
from evenmatch.service.recording.report_batch import ReportBatch
from evenmatch.service.service import Service
from ledger.sample_matches import duel
from postgres import postgres  # noqa: F401

SECRET, OTHER_SECRET = b"s" * 32, b"t" * 32
ONE, TWO = "1" * 32, "2" * 32


def sent_and_answered(service: Service, ladder: str, reports: ReportBatch) -> tuple[list, list]:
    """The outcomes as the recording process has them, and as the other one reads them from the reply."""
    request = messages.read_request(messages.encode(messages.HandOverRequest(7, ladder, reports)))
    assert repr(request.reports) == repr(reports)
    own = service.recorder.record(ladder, request.reports)
    reply = messages.decode_reply(messages.encode(messages.reply_to(request, own)))
    assert (reply.number, reply.done) == (7, True)
    return own, messages.outcomes_of(ladder, reports, reply)


def batch(*matches: Match, rated: bool = True) -> ReportBatch:
    return ReportBatch.of(matches, [rated] * len(matches))


@pytest.fixture
def service(database_url, clock):
    with Service.open(str(database_url), clock) as opened:
        for system in ("wager", "glicko2"):
            opened.create_ladder(system, system, rules(system))
        yield opened


@pytest.mark.parametrize("ladder", ["wager", "glicko2"])
def test_receipts_arrive_as_they_were_made(service, ladder):
    reports = batch(*(duel(number, "ann", f"bob {number % 3}", ladder=ladder) for number in range(5)))
    own, arrived = sent_and_answered(service, ladder, reports)
    assert arrived == own
    assert [encoded(rendered(one)) for one in arrived] == [encoded(rendered(one)) for one in own]
    again, repeated = sent_and_answered(service, ladder, reports)
    assert repeated == again == own


def test_unrated_matches_and_present_names_arrive(service):
    first = batch(duel(1, "ann", "bob", ladder="wager"))
    sent_and_answered(service, "wager", first)
    service.rename("ann", "anna")
    own, arrived = sent_and_answered(service, "wager", first)
    assert arrived == own
    assert arrived[0].teams[0][0].change.player == "anna"
    own, arrived = sent_and_answered(service, "wager", batch(duel(2, "ann", "bob", ladder="wager"), rated=False))
    assert arrived == own
    assert not arrived[0].rated


def test_refusals_arrive_with_their_class_and_words(service):
    sent_and_answered(service, "wager", batch(duel(1, "ann", "bob", ladder="wager")))
    other = duel(1, "ann", "eve", ladder="wager")
    late = batch(duel(2, "ann", "bob", ladder="wager"))
    late.played_at[0] += 10**15
    reports = ReportBatch.joined([batch(other), late, batch(duel(3, "ann", "bob", ladder="wager"))])
    own, arrived = sent_and_answered(service, "wager", reports)
    assert [(type(one), str(one)) for one in arrived[:2]] == [(type(one), str(one)) for one in own[:2]]
    assert type(arrived[0]) is ConflictError
    assert arrived[2] == own[2]


def test_problems_of_rows_arrive(service):
    service.match_limits = MatchLimits(2, 2)
    crowd = batch(duel(1, "ann", "bob", ladder="wager"))
    crowd.sizes[0], crowd.player = 2, ["ann", "eve", "bob"]
    for column in (crowd.score, crowd.seconds, crowd.performance):
        column.append(0.0)
    crowd.quit.append(False)
    crowd.keep.append(True)
    (own,), (arrived,) = sent_and_answered(service, "wager", crowd)
    assert type(arrived) is type(own) is BadRowsError
    assert (arrived.source, arrived.problems, str(arrived)) == (own.source, own.problems, str(own))


def test_torn_messages_are_refused(service):
    reports = batch(duel(1, "ann", "bob", ladder="wager"))
    reports.sizes[0] = 2
    with pytest.raises(ValueError, match="not whole"):
        messages.read_request(messages.encode(messages.HandOverRequest(1, "wager", reports)))
    whole = batch(duel(1, "ann", "bob", ladder="wager"))
    reply = messages.reply_to(messages.HandOverRequest(1, "wager", whole), service.recorder.record("wager", whole))
    with pytest.raises(ValueError, match="another length"):
        messages.outcomes_of("wager", ReportBatch.joined([whole, whole]), reply)
    (receipt,) = reply.receipts
    cut = messages.PackedReceipt(receipt.source, receipt.position, receipt.lines[:-1], None)
    broken = messages.HandOverReply(1, True, reply.sources, [cut], {})
    with pytest.raises(ValueError, match="buffer size"):
        messages.outcomes_of("wager", whole, broken)


@asynccontextmanager
async def both_ends(tmp_path, secrets, *, name=TWO, encrypted=False):
    """What each side makes of a new connection: a PeerConnection, or the error."""
    accepted, writers = asyncio.get_running_loop().create_future(), []

    async def accept(reader, writer):
        writers.append(writer)
        try:
            accepted.set_result(await PeerConnection.accepted(reader, writer, secrets[1], TWO, encrypted=encrypted))
        except Exception as error:
            accepted.set_result(error)
            writer.close()

    server = await asyncio.start_unix_server(accept, tmp_path / "socket")
    reader, writer = await asyncio.open_unix_connection(tmp_path / "socket")
    writers.append(writer)
    try:
        begun = await PeerConnection.begun(reader, writer, secrets[0], ONE, name, encrypted=encrypted)
    except Exception as error:
        begun = error
        writer.close()
    yield begun, await accepted
    server.close()
    for one in writers:
        one.close()
        with suppress(OSError):
            await one.wait_closed()


@pytest.mark.parametrize("encrypted", [False, True])
def test_messages_go_both_ways(tmp_path, encrypted):
    async def talk():
        async with both_ends(tmp_path, (SECRET, SECRET), encrypted=encrypted) as (one, two):
            for sender, receiver in ((one, two), (two, one), (one, two)):
                sender.send(b"x" * 200_000)
                sender.send(b"")
                assert await receiver.receive() == b"x" * 200_000
                assert await receiver.receive() == b""

    asyncio.run(talk())


@pytest.mark.parametrize(("secrets", "name"), [((SECRET, OTHER_SECRET), TWO), ((SECRET, SECRET), "3" * 32)])
def test_who_has_another_secret_or_name_is_refused_by_both(tmp_path, secrets, name):
    async def talk():
        async with both_ends(tmp_path, secrets, name=name) as (one, two):
            assert isinstance(one, SecretError)
            assert isinstance(two, SecretError | EOFError)

    asyncio.run(talk())


def test_an_altered_message_between_machines_is_not_read(tmp_path):
    async def talk():
        async with both_ends(tmp_path, (SECRET, SECRET), encrypted=True) as (one, two):
            sealed = bytearray(one._outward.seal(b"record this"))
            sealed[3] ^= 1
            one._writer.write(len(sealed).to_bytes(4, "big") + sealed)
            with pytest.raises(SecretError, match="altered"):
                await two.receive()

    asyncio.run(talk())


def test_too_long_a_message_is_not_waited_for(tmp_path):
    async def talk():
        async with both_ends(tmp_path, (SECRET, SECRET)) as (one, two):
            one._writer.write((2**32 - 1).to_bytes(4, "big"))
            with pytest.raises(ValueError, match="expected at most"):
                await two.receive()

    asyncio.run(talk())


class Hand:
    """A monotonic clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def fellow(name: str, kind: str = "1", machine: str = "here", host: str | None = None) -> Fellow:
    return Fellow(name, kind, machine, f"/run/{name}", host, 9000)


def test_all_processes_choose_the_same_one_until_it_is_gone(postgres):  # noqa: F811
    hand = Hand()
    with Service.open(postgres.fresh_database()) as service:
        parts = [FellowProcesses(service.database, fellow(name), lambda: 0, hand) for name in "abc"]
        for _ in range(2):
            for part in parts:
                part.attend()
        chosen = {ladder: {part.recorder_of(ladder) or part.own for part in parts} for ladder in map(str, range(60))}
        assert all(len(one) == 1 for one in chosen.values())
        counts = [sum(fellow(name) in one for one in chosen.values()) for name in "abc"]
        assert min(counts) >= 8, counts
        for part in parts[:2]:
            part.attend()
        hand.now += PATIENCE + 0.1  # the third one is silent
        for part in parts[:2]:
            part.attend()
        assert {parts[0].recorder_of(ladder) for ladder in chosen} == {None, fellow("b")}
        parts[1].leave()
        parts[0].attend()
        assert {parts[0].recorder_of(ladder) for ladder in chosen} == {None}


def test_a_process_that_cannot_read_the_list_hands_nothing_over(postgres):  # noqa: F811
    hand = Hand()
    with Service.open(postgres.fresh_database()) as service:
        parts = [FellowProcesses(service.database, fellow(name), lambda: 0, hand) for name in "ab"]
        for _ in range(2):
            for part in parts:
                part.attend()
        assert {part.recorder_of("arena") for part in parts} != {None}
        hand.now += PATIENCE + 0.1
        assert {part.recorder_of("arena") for part in parts} == {None}


@pytest.mark.parametrize(
    ("other", "reached"),
    [
        (fellow("b"), True),
        (fellow("b", kind="2"), False),
        (fellow("b", machine="there"), False),
        (fellow("b", machine="there", host="there.example"), True),
    ],
)
def test_other_versions_and_machines_without_an_address_are_left_out(other, reached):
    assert fellow("a", host="here.example").can_reach(other) is reached


def test_a_row_of_another_form_is_no_process(postgres):  # noqa: F811
    with Service.open(postgres.fresh_database()) as service:
        part = FellowProcesses(service.database, fellow("a"), lambda: 0, Hand())
        with service.database.write() as store:
            store.run("INSERT INTO lease (name, owner, beat) VALUES ('recorder b', '[1, 2]', 1)")
        part.attend()
        assert part.recorder_of("arena") is None
