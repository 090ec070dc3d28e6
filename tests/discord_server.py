"""A stand-in for Discord on loopback: the gateway and the REST routes that the bot uses, with the limits of both.

It is written from Discord's documentation of API version 10 and refuses what Discord refuses. The real service was
never reached. Tests act as users: they send commands, press buttons, and read what a channel shows.
"""

import asyncio
import itertools
import json
import re
import threading
import time
from contextlib import contextmanager

from aiohttp import WSMsgType, web

from server_process import SLOWEST

TOKEN, BOT, APPLICATION, GUILD = "stand-in.token", 1000000000000000001, 1000000000000000002, 1000000000000000003
CHANNEL, BOARD = 1000000000000000004, 1000000000000000005
EVERYBODY, MANAGE_GUILD = 1 << 11, 1 << 5  # permissions: to send messages; to manage the server
HELLO, DISPATCH, HEARTBEAT, IDENTIFY, RESUME, ACKNOWLEDGED = 10, 0, 1, 2, 6, 11
WHEN = "2026-11-27T20:00:00.000000+00:00"
REFUSED = "Invalid Form Body"


def person(number, name, **more):
    return {"id": str(number), "username": name, "discriminator": "0", "avatar": None, "global_name": name, **more}


def text_channel(number, name):
    return {
        "id": str(number), "type": 0, "guild_id": str(GUILD), "name": name, "position": 0,
        "permission_overwrites": [], "topic": None, "nsfw": False, "parent_id": None, "rate_limit_per_user": 0,
    }  # fmt: skip


def respond(body, status=200, headers=None):
    """JSON as Discord sends it: without a charset."""
    return web.Response(body=json.dumps(body).encode(), status=status, headers=headers, content_type="application/json")


def problem(status, code, message):
    return respond({"code": code, "message": message}, status=status)


def fault_of(message):
    """Why Discord refuses a message; None: it does not."""
    if not (message.get("content") or message.get("embeds")):
        return "empty message"
    if len(message.get("content") or "") > 2000:
        return "content is longer than 2000 characters"
    for embed in message.get("embeds") or ():
        if len(embed.get("title") or "") > 256 or len(embed.get("description") or "") > 4096:
            return "an embed is too long"
    rows = message.get("components") or []
    if len(rows) > 5 or any(row["type"] != 1 or not 1 <= len(row["components"]) <= 5 for row in rows):
        return "too many components"
    buttons = [button for row in rows for button in row["components"]]
    if any(len(button["custom_id"]) > 100 or len(button["label"]) > 80 for button in buttons):
        return "a custom_id or a label is too long"
    return "two buttons have one custom_id" if len({one["custom_id"] for one in buttons}) < len(buttons) else None


class DiscordServer:
    """Discord, in a thread of its own. Its messages are dictionaries, as they go over the wire."""

    def __init__(self):
        self.messages, self.commands, self.answers, self.asked = {}, [], {}, []
        self.forbidden, self.limited = False, 0  # of posting messages: all refused; refused so many times
        self._numbers = itertools.count(1_100_000_000_000_000_000)
        self._changed = threading.Condition()
        self._sockets, self._loop = [], asyncio.new_event_loop()
        self._sequence = itertools.count(1)

    def __enter__(self):
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.address = asyncio.run_coroutine_threadsafe(self._serve(), self._loop).result(SLOWEST)
        return self

    def __exit__(self, *_):
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result(SLOWEST)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(SLOWEST)
        self._loop.close()

    async def _serve(self):
        app = web.Application(middlewares=[self._guard])
        message = "/channels/{channel}/messages/{message}"
        app.add_routes([
            web.get("/gateway", self._gateway),
            web.get("/users/@me", self._me),
            web.get("/oauth2/applications/@me", self._application),
            web.get("/channels/{channel}", self._channel),
            web.put("/applications/{application}/guilds/{guild}/commands", self._declare),
            web.get("/channels/{channel}/messages", self._history),
            web.post("/channels/{channel}/messages", self._post),
            web.get(message, self._message),
            web.patch(message, self._edit),
            web.delete(message, self._delete),
            web.post("/interactions/{interaction}/{token}/callback", self._callback),
            web.patch("/webhooks/{application}/{token}/messages/@original", self._answer),
        ])  # fmt: skip
        self._runner = web.AppRunner(app, shutdown_timeout=1.0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        return f"127.0.0.1:{self._runner.addresses[0][1]}"

    @web.middleware
    async def _guard(self, request, handler):
        """Ask for the bot's token wherever Discord does."""
        is_open = request.path.startswith(("/gateway", "/interactions", "/webhooks"))
        if not is_open and request.headers.get("Authorization") != f"Bot {TOKEN}":
            return problem(401, 0, "401: Unauthorized")
        with self._changed:
            self.asked.append(f"{request.method} {request.path}")
        return await handler(request)

    # REST

    async def _me(self, _):
        return respond(person(BOT, "evenmatch", bot=True))

    async def _application(self, _):
        return respond({
            "id": str(APPLICATION), "name": "evenmatch", "icon": None, "description": "", "bot_public": False,
            "bot_require_code_grant": False, "verify_key": "", "flags": 0, "team": None, "summary": "",
            "owner": person(1, "owner"),
        })  # fmt: skip

    async def _channel(self, request):
        channels = {str(CHANNEL): "arena", str(BOARD): "standings"}
        number = request.match_info["channel"]
        if number not in channels:
            return problem(404, 10003, "Unknown Channel")
        return respond(text_channel(int(number), channels[number]))

    async def _declare(self, request):
        declared = await request.json()
        assert all(
            re.fullmatch(r"[a-z-]{1,32}", one["name"]) and 1 <= len(one["description"]) <= 100 for one in declared
        )
        with self._changed:
            self.commands = [one["name"] for one in declared]
            self._changed.notify_all()
        common = {"application_id": str(APPLICATION), "guild_id": str(GUILD), "version": "1"}
        return respond([{"id": str(next(self._numbers)), **common, **one} for one in declared])

    async def _history(self, request):
        with self._changed:
            found = self.in_channel(int(request.match_info["channel"]))
        if "before" in request.query:
            found = [one for one in found if int(one["id"]) < int(request.query["before"])]
        return respond(found[::-1][: int(request.query.get("limit", 50))])

    def _refusal(self):
        if self.forbidden:
            return problem(403, 50013, "Missing Permissions")
        if self.limited:
            self.limited -= 1
            body = {"message": "You are being rate limited.", "retry_after": 0.05, "global": False}
            return respond(body, status=429, headers={"Via": "1.1 stand-in", "Retry-After": "1"})
        return None

    async def _post(self, request):
        given = await request.json()
        if (refusal := self._refusal()) is not None:
            return refusal
        assert "everyone" not in given["allowed_mentions"]["parse"], "a player's name could call everybody"
        if (fault := fault_of(given)) is not None:
            return problem(400, 50035, f"{REFUSED}: {fault}")
        return respond(self.post(int(request.match_info["channel"]), person(BOT, "evenmatch", bot=True), given))

    def post(self, channel, author, given):
        """A message that somebody writes."""
        message = {
            "id": str(next(self._numbers)), "channel_id": str(channel), "author": author, "content": "",
            "timestamp": WHEN, "edited_timestamp": None, "tts": False, "mention_everyone": False, "mentions": [],
            "mention_roles": [], "attachments": [], "embeds": [], "components": [], "pinned": False, "type": 0,
        }  # fmt: skip
        message |= {name: given[name] for name in ("content", "embeds", "components", "flags") if given.get(name)}
        with self._changed:
            self.messages[message["id"]] = message
            self._changed.notify_all()
        return message

    async def _message(self, request):
        found = self.messages.get(request.match_info["message"])
        return problem(404, 10008, "Unknown Message") if found is None else respond(found)

    async def _edit(self, request):
        given = await request.json()
        with self._changed:
            message = self.messages.get(request.match_info["message"])
            if message is None:
                return problem(404, 10008, "Unknown Message")
            edited = message | given
            if (fault := fault_of(edited)) is not None:
                return problem(400, 50035, f"{REFUSED}: {fault}")
            edited = {name: value if value is not None else message[name] for name, value in edited.items()}
            edited["edits"] = message.get("edits", 0) + 1
            self.messages[message["id"]] = edited
            self._changed.notify_all()
        return respond(edited)

    async def _delete(self, request):
        with self._changed:
            gone = self.messages.pop(request.match_info["message"], None)
            self._changed.notify_all()
        return problem(404, 10008, "Unknown Message") if gone is None else web.Response(status=204)

    async def _callback(self, request):
        given = await request.json()
        assert given == {"type": 5, "data": {"flags": 64}}, "each answer is for its user alone, and deferred"
        if "with_response" not in request.query:
            return web.Response(status=204)
        interaction = {"id": request.match_info["interaction"], "type": 2, "response_message_ephemeral": True}
        return respond({"interaction": interaction, "resource": {"type": 5}})

    async def _answer(self, request):
        given = await request.json()
        if (fault := fault_of(given)) is not None:
            return problem(400, 50035, f"{REFUSED}: {fault}")
        with self._changed:
            self.answers[request.match_info["token"]] = given["content"]
            self._changed.notify_all()
        author = person(BOT, "evenmatch", bot=True)
        return respond({
            "id": str(next(self._numbers)), "channel_id": str(CHANNEL), "author": author, "timestamp": WHEN,
            "edited_timestamp": None, "tts": False, "mention_everyone": False, "mentions": [], "mention_roles": [],
            "attachments": [], "embeds": [], "components": [], "pinned": False, "type": 0, **given,
        })  # fmt: skip

    # gateway

    async def _gateway(self, request):
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_json({"op": HELLO, "d": {"heartbeat_interval": 41_250}, "s": None, "t": None})
        async for frame in socket:
            if frame.type is not WSMsgType.TEXT:
                continue
            said = json.loads(frame.data)
            if said["op"] == HEARTBEAT:
                await socket.send_json({"op": ACKNOWLEDGED, "d": None, "s": None, "t": None})
            elif said["op"] == IDENTIFY:
                if said["d"]["token"] != TOKEN:
                    await socket.close(code=4004, message=b"Authentication failed.")
                    break
                await self._dispatch(socket, "READY", {
                    "v": 10, "user": person(BOT, "evenmatch", bot=True), "guilds": [], "session_id": "session",
                    "resume_gateway_url": f"ws://{self.address}/gateway",
                    "application": {"id": str(APPLICATION), "flags": 0},
                })  # fmt: skip
                self._accept(socket)
            elif said["op"] == RESUME:
                assert said["d"]["session_id"] == "session"
                await self._dispatch(socket, "RESUMED", {})
                self._accept(socket)
        with self._changed:
            self._sockets = [one for one in self._sockets if one is not socket]
            self._changed.notify_all()
        return socket

    def _accept(self, socket):
        with self._changed:
            self._sockets.append(socket)
            self._changed.notify_all()

    async def _dispatch(self, socket, kind, body):
        await socket.send_json({"op": DISPATCH, "t": kind, "s": next(self._sequence), "d": body})

    async def drop(self):
        """Close every connection, as Discord does when it moves a client to another machine."""
        with self._changed:
            dropped, self._sockets = self._sockets, []
        for socket in dropped:
            await socket.close(code=1001)

    def wait_until_alone(self):
        """Until no bot is connected."""
        self.until(lambda: not self._sockets)

    # what a test does

    def run(self, work):
        """Run a coroutine in the thread of the server."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(SLOWEST)

    def until(self, look, may_go_on=lambda: True, told=str):
        """What `look` returns, once that is true. may_go_on: asked every second, and told if it is false."""
        deadline = time.monotonic() + SLOWEST
        with self._changed:
            while not (found := look()):
                assert may_go_on(), told()
                self._changed.wait(1.0)
                assert time.monotonic() < deadline, self.in_channel(CHANNEL)
            return found

    def in_channel(self, channel):
        """The messages of a channel, oldest first."""
        return [one for one in self.messages.values() if one["channel_id"] == str(channel)]

    def shown(self, text, channel=CHANNEL):
        """The one message of a channel that holds a text, once there is one."""

        def look():
            return [
                one for one in self.in_channel(channel) if text in one["content"] or text in json.dumps(one["embeds"])
            ]

        (found,) = self.until(look)
        return found

    @contextmanager
    def forbidding(self):
        """While the block runs, the bot may not write."""
        self.forbidden = True
        try:
            yield
        finally:
            self.forbidden = False

    def command(self, user, name, **options):
        """What the bot answers to a slash command of a user."""
        given = [{"name": key, "type": 6, "value": str(value)} for key, value in options.items()]
        people = {str(value): person(value, f"user{value}") for value in options.values()}
        members = {number: self._member(number) for number in people}
        data = {"id": "1", "name": name, "type": 1, "options": given, "guild_id": str(GUILD)}
        data |= {"resolved": {"users": people, "members": members}} if people else {}
        return self._interact(user, 2, data, EVERYBODY)

    def press(self, user, message, label, permissions=EVERYBODY):
        """What the bot answers to a press on a button of a message."""
        listed = [one for row in message["components"] for one in row["components"]]
        (custom_id,) = [one["custom_id"] for one in listed if one["label"] == label]
        data = {"custom_id": custom_id, "component_type": 2}
        return self._interact(user, 3, data, permissions, message=message)

    def _member(self, number):
        return {
            "roles": [], "joined_at": WHEN, "deaf": False, "mute": False, "flags": 0, "permissions": str(EVERYBODY),
            "nick": None, "avatar": None, "premium_since": None,
        }  # fmt: skip

    def _interact(self, user, kind, data, permissions, **more):
        token = f"interaction-{next(self._numbers)}"
        member = {**self._member(user), "user": person(user, f"user{user}"), "permissions": str(permissions)}
        body = {
            "id": str(next(self._numbers)), "application_id": str(APPLICATION), "type": kind, "data": data,
            "guild_id": str(GUILD), "channel_id": str(CHANNEL), "channel": text_channel(CHANNEL, "arena"),
            "member": member, "token": token, "version": 1, "app_permissions": str(EVERYBODY), "locale": "en-GB",
            "entitlements": [], "authorizing_integration_owners": {}, "context": 0, "attachment_size_limit": 1, **more,
        }  # fmt: skip
        (socket, *_) = self.until(lambda: list(self._sockets))
        self.run(self._dispatch(socket, "INTERACTION_CREATE", body))
        return self.until(lambda: self.answers.get(token))
