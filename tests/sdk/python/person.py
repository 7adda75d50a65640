"""A person with an account and one connection by the official Python SDK, in either format."""

import asyncio
import json

from centrifuge import Client, ClientEventHandler, SubscriptionEventHandler

from folkmoot import WAIT_S_MAX


class Inbox:
    """What has arrived and not been looked at yet. Waiting is for an event, never for a time."""

    def __init__(self, name):
        self.name = name
        self._queue = asyncio.Queue()

    def put(self, item):
        self._queue.put_nowait(item)

    async def next(self, fits=lambda item: True, wait_s=WAIT_S_MAX):
        """Takes the first item that fits, dropping those before it."""
        while True:
            try:
                item = await asyncio.wait_for(self._queue.get(), wait_s)
            except asyncio.TimeoutError:
                raise AssertionError(f"{self.name}: nothing within {wait_s} s") from None
            if fits(item):
                return item

    async def take(self, count):
        return [await self.next() for _ in range(count)]

    @property
    def empty(self):
        return self._queue.empty()


class _Life(ClientEventHandler):
    def __init__(self, person):
        self._person = person

    async def on_connecting(self, ctx):
        self._person.life.put(("connecting", ctx))

    async def on_connected(self, ctx):
        self._person.life.put(("connected", ctx))

    async def on_disconnected(self, ctx):
        self._person.life.put(("disconnected", ctx))

    async def on_subscribed(self, ctx):
        self._person.own_subscribed.put(ctx)

    async def on_publication(self, ctx):
        self._person.own.put((ctx.pub.offset, self._person.decode(ctx.pub.data)))


class _Events(SubscriptionEventHandler):
    def __init__(self, person, stream):
        self._person = person
        self._stream = stream

    async def on_subscribed(self, ctx):
        self._stream.subscribed.put(ctx)

    async def on_unsubscribed(self, ctx):
        self._stream.ended.put(ctx)

    async def on_publication(self, ctx):
        self._stream.events.put((ctx.pub.offset, self._person.decode(ctx.pub.data)))


class Stream:
    """One subscription and what it brought."""

    def __init__(self, person, channel):
        self.events = Inbox(channel)
        self.subscribed = Inbox(f"{channel} subscriptions")
        self.ended = Inbox(f"{channel} ends")
        self.subscription = person.client.new_subscription(channel, events=_Events(person, self))


class Person:
    """Payloads are JSON in both formats; in protobuf the SDK hands them over as bytes."""

    def __init__(self, account, port, protobuf, token=None):
        self.user = account.get("user")
        self.protobuf = protobuf
        self.life = Inbox("connection")
        self.own = Inbox("own stream")
        self.own_subscribed = Inbox("own subscriptions")
        self.client = Client(
            f"ws://127.0.0.1:{port}/connection/websocket",
            events=_Life(self),
            token=token or account["token"],
            use_protobuf=protobuf,
            min_reconnect_delay=0.02,
            max_reconnect_delay=0.2,
        )

    @classmethod
    async def connect(cls, account, port, protobuf):
        person = cls(account, port, protobuf)
        await person.client.connect()
        await person.lives("connected")
        return person

    async def lives(self, event):
        """The context of the next connection event of this name; others are skipped."""
        return (await self.life.next(lambda item: item[0] == event))[1]

    def encode(self, value):
        return json.dumps(value).encode() if self.protobuf else value

    def decode(self, value):
        return json.loads(value) if self.protobuf else value

    async def rpc(self, method, data=None):
        result = await self.client.rpc(method, self.encode(data or {}))
        return self.decode(result.data)

    async def send(self, room, key, body):
        return await self.rpc("message.send", {"room": room, "key": key, "body": body})

    async def subscribe(self, channel):
        stream = Stream(self, channel)
        await stream.subscription.subscribe()
        await stream.subscription.ready(timeout=5)
        return stream

    async def close(self):
        await self.client.disconnect()


async def two_in_a_room(server, protobuf, port=None):
    """Two people in one room; the second connects through `port`."""
    ada = await Person.connect(await server.sign_up("ada"), server.port, protobuf)
    bo = await Person.connect(await server.sign_up("bo"), port or server.port, protobuf)
    room = await ada.rpc("room.create", {"name": "Tea"})
    invite = await ada.rpc("invite.create", {"room": room["id"]})
    await bo.rpc("invite.accept", {"code": invite["code"]})
    return ada, bo, room["id"]
