"""A backend in Python publishes through `cent`, the official library of Centrifugo's server API, and a user listens
through the official Python SDK, both unmodified, in both formats."""

import asyncio
import base64
import hashlib
import hmac
import json
import unittest

from cent import (
    AsyncClient,
    BatchRequest,
    BroadcastRequest,
    CentApiResponseError,
    ChannelsRequest,
    DisconnectRequest,
    HistoryRemoveRequest,
    HistoryRequest,
    InfoRequest,
    PresenceRequest,
    PresenceStatsRequest,
    PublishRequest,
    RefreshRequest,
    SubscribeRequest,
    UnsubscribeRequest,
)
from centrifuge import Client, ClientEventHandler, SubscriptionEventHandler

from folkmoot import Server

SECRET = "a secret of the backend"
KEY = "an api key"
SETTINGS = {
    "client": {"token": {"hmac_secret_key": SECRET}},
    "http_api": {"key": KEY},
    "channel": {
        "namespaces": [
            {
                "name": "news",
                "allow_subscribe_for_client": True,
                "presence": True,
                "history_size": 10,
                "history_ttl": "60s",
                "force_recovery": True,
            }
        ]
    },
}
WAIT_S_MAX = 20


def token(claims):
    def part(raw):
        return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()

    head = part(json.dumps({"alg": "HS256", "typ": "JWT"}).encode())
    signed = f"{head}.{part(json.dumps(claims).encode())}"
    return f"{signed}.{part(hmac.new(SECRET.encode(), signed.encode(), hashlib.sha256).digest())}"


class Subscribed(SubscriptionEventHandler):
    """Keeps what the channel brings."""

    def __init__(self):
        self.publications = asyncio.Queue()

    async def on_publication(self, ctx):
        await self.publications.put(ctx.pub.data)


class Connected(ClientEventHandler):
    """Keeps what happens to the connection beside its own subscriptions."""

    def __init__(self):
        self.pushed = asyncio.Queue()
        self.ended = asyncio.Queue()

    async def on_publication(self, ctx):
        await self.pushed.put(ctx.pub.data)

    async def on_disconnected(self, ctx):
        await self.ended.put(ctx.code)


class Relay:
    """The promises; a subclass names the format."""

    protobuf = None

    async def asyncSetUp(self):
        self.server = await Server.start(SETTINGS)
        self.addAsyncCleanup(self.server.stop)
        self.api = AsyncClient(f"http://127.0.0.1:{self.server.port}/api", KEY)
        self.addAsyncCleanup(self.api.close)
        self.events = Connected()
        self.ada = Client(
            f"ws://127.0.0.1:{self.server.port}/connection/websocket",
            events=self.events,
            token=token({"sub": "ada"}),
            use_protobuf=self.protobuf,
        )
        self.addAsyncCleanup(self.ada.disconnect)
        await self.ada.connect()
        await self.ada.ready()

    async def next(self, queue):
        item = await asyncio.wait_for(queue.get(), WAIT_S_MAX)
        return json.loads(item) if isinstance(item, bytes) else item

    async def test_a_backend_publishes_and_its_user_hears_it_in_order(self):
        events = Subscribed()
        subscription = self.ada.new_subscription("news:today", events=events)
        await subscription.subscribe()
        await subscription.ready()
        for number in range(1, 21):
            result = await self.api.publish(
                PublishRequest(channel="news:today", data={"number": number})
            )
            self.assertEqual(result.offset, number)
        heard = [await self.next(events.publications) for _ in range(20)]
        self.assertEqual([one["number"] for one in heard], list(range(1, 21)))
        presence = await self.api.presence(PresenceRequest(channel="news:today"))
        self.assertEqual([one.user for one in presence.presence.values()], ["ada"])
        stats = await self.api.presence_stats(PresenceStatsRequest(channel="news:today"))
        self.assertEqual((stats.num_clients, stats.num_users), (1, 1))
        channels = await self.api.channels(ChannelsRequest(pattern="news:*"))
        self.assertEqual(channels.channels["news:today"].num_clients, 1)
        info = await self.api.info(InfoRequest())
        self.assertEqual((info.nodes[0].num_clients, info.nodes[0].num_channels), (1, 1))

    async def test_history_is_read_and_removed(self):
        await self.api.publish(PublishRequest(channel="news:kept", data=1))
        page = await self.api.history(HistoryRequest(channel="news:kept", limit=10))
        self.assertEqual([(one.offset, one.data) for one in page.publications], [(1, 1)])
        await self.api.history_remove(HistoryRemoveRequest(channel="news:kept"))
        page = await self.api.history(HistoryRequest(channel="news:kept", limit=10))
        self.assertEqual((page.publications, page.offset), ([], 1))

    async def test_a_broadcast_and_a_batch_are_answered_for_each_part(self):
        request = BroadcastRequest(channels=["news:a", "news:b"], data="all")
        result = await self.api.broadcast(request)
        self.assertEqual([one.result.offset for one in result.responses], [1, 1])
        commands = [PublishRequest(channel=f"news:{name}", data=2) for name in "ab"]
        result = await self.api.batch(BatchRequest(requests=commands))
        self.assertEqual([one.offset for one in result.replies], [2, 2])

    async def test_a_backend_subscribes_unsubscribes_refreshes_and_disconnects(self):
        await self.api.subscribe(SubscribeRequest(user="ada", channel="news:pushed"))
        await self.api.publish(PublishRequest(channel="news:pushed", data="here"))
        self.assertEqual(await self.next(self.events.pushed), "here")
        await self.api.unsubscribe(UnsubscribeRequest(user="ada", channel="news:pushed"))
        stats = await self.api.presence_stats(PresenceStatsRequest(channel="news:pushed"))
        self.assertEqual(stats.num_clients, 0)
        await self.api.refresh(RefreshRequest(user="ada", expire_at=4_000_000_000))
        await self.api.disconnect(DisconnectRequest(user="ada"))
        self.assertEqual(await self.next(self.events.ended), 3503)

    async def test_an_error_has_its_code(self):
        with self.assertRaises(CentApiResponseError) as refused:
            await self.api.publish(PublishRequest(channel="nowhere:x", data=1))
        self.assertEqual(refused.exception.code, 102)


class RelayInJson(Relay, unittest.IsolatedAsyncioTestCase):
    protobuf = False


class RelayInProtobuf(Relay, unittest.IsolatedAsyncioTestCase):
    protobuf = True


if __name__ == "__main__":
    unittest.main()
