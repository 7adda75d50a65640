"""Two people talk through the official Python SDK, unmodified, in both formats."""

import unittest

from centrifuge import CentrifugeError, ReplyError, StreamPosition

from folkmoot import Proxy, Server
from person import Person, two_in_a_room


def of_type(name):
    return lambda item: item[1]["type"] == name


class Conversation:
    """The promises; a subclass names the format."""

    protobuf = None

    async def asyncSetUp(self):
        self.server = await Server.start()
        self.addAsyncCleanup(self.server.stop)
        self.proxy = await Proxy.start(self.server)
        self.addAsyncCleanup(self.proxy.stop)
        self.ada, self.bo, self.room = await two_in_a_room(
            self.server, self.protobuf, self.proxy.port
        )
        self.addAsyncCleanup(self.bo.close)
        self.addAsyncCleanup(self.ada.close)
        self.channel = f"room:{self.room}"

    async def expect_exactly(self, stream, bodies):
        """Takes as many messages as were sent: these, in order, without a gap in the stream."""
        events = await stream.events.take(len(bodies))
        self.assertEqual([data["body"] for _, data in events], bodies)
        offsets = [offset for offset, _ in events]
        self.assertEqual(offsets, list(range(offsets[0], offsets[0] + len(bodies))))

    async def refused(self, code, call):
        with self.assertRaises(ReplyError) as refusal:
            await call
        self.assertEqual(refusal.exception.code, code)

    async def test_a_conversation_reaches_everyone_in_order(self):
        own = await self.bo.own_subscribed.next()
        self.assertEqual(own.channel, f"user:{self.bo.user['id']}")
        _, added = await self.bo.own.next(of_type("room_added"))
        self.assertEqual(added["room"]["id"], self.room)

        adas = await self.ada.subscribe(self.channel)
        bos = await self.bo.subscribe(self.channel)
        await adas.subscription.publish(self.ada.encode({"body": "hello", "key": "first"}))
        sent = await self.bo.send(self.room, "second", "Grüße ☕\nsecond line")
        again = await self.bo.send(self.room, "second", "Grüße ☕\nsecond line")
        self.assertEqual(again, {**sent, "duplicate": True})
        for stream in (adas, bos):
            await self.expect_exactly(stream, ["hello", "Grüße ☕\nsecond line"])

        await self.bo.rpc("typing.set", {"room": self.room, "on": True})
        offset, typing = await adas.events.next(of_type("typing"))
        self.assertEqual((offset or 0, typing["user"]), (0, self.bo.user["id"]))

        await self.ada.send(self.room, "third", "look, @bo")
        _, mention = await self.bo.own.next(of_type("mention"))
        self.assertEqual((mention["room"], mention["seq"]), (self.room, 3))
        state = await self.bo.rpc("read.set", {"room": self.room, "seq": 3})
        self.assertEqual(state, {"read_seq": 3, "unread": 0, "mentions": 0})

    async def test_history_and_presence_answer_as_the_sdk_expects(self):
        adas = await self.ada.subscribe(self.channel)
        await self.bo.subscribe(self.channel)
        for index in range(3):
            await self.ada.send(self.room, f"k{index}", f"message {index}")
        position = await adas.subscription.history(limit=0)
        self.assertEqual(position.publications, [])
        page = await adas.subscription.history(limit=100)
        self.assertEqual([pub.offset for pub in page.publications], list(range(1, page.offset + 1)))
        since = StreamPosition(offset=page.offset - 1, epoch=page.epoch)
        last = await adas.subscription.history(limit=100, since=since)
        self.assertEqual(self.ada.decode(last.publications[0].data)["body"], "message 2")
        reverse = await adas.subscription.history(limit=2, reverse=True)
        self.assertEqual(
            [pub.offset for pub in reverse.publications], [page.offset, page.offset - 1]
        )
        users = {info.user for info in (await adas.subscription.presence()).clients.values()}
        self.assertEqual(users, {self.ada.user["id"], self.bo.user["id"]})
        stats = await adas.subscription.presence_stats()
        self.assertEqual((stats.num_clients, stats.num_users), (2, 2))

    async def test_events_missed_while_cut_or_killed_arrive_once_and_in_order(self):
        bos = await self.bo.subscribe(self.channel)
        await bos.subscribed.next()
        missed = [f"missed {index}" for index in range(20)]
        self.proxy.cut()
        await self.bo.lives("connecting")
        for body in missed:
            await self.ada.send(self.room, body, body)
        self.proxy.restore()
        self.assertTrue((await bos.subscribed.next()).recovered)
        await self.expect_exactly(bos, missed)

        acknowledged = [f"acknowledged {index}" for index in range(20)]
        self.proxy.cut()
        await self.bo.lives("connecting")
        for body in acknowledged:
            await self.ada.send(self.room, body, body)
        await self.server.kill()
        await self.server.launch()
        self.proxy.restore()
        self.assertTrue((await bos.subscribed.next()).recovered)
        await self.expect_exactly(bos, acknowledged)
        # The restarted server is at another port, which ada's SDK cannot know; bo's is the proxy's.
        await self.bo.send(self.room, "alive", "still alive")
        await self.expect_exactly(bos, ["still alive"])
        self.assertTrue(bos.events.empty)

    async def test_refusals_carry_their_codes(self):
        await self.refused(104, self.ada.rpc("room.explode"))
        await self.refused(400, self.ada.send(self.room, "k", " "))
        await self.refused(413, self.ada.send(self.room, "k", "x" * 8_001))
        await self.ada.send(self.room, "taken", "one")
        await self.refused(409, self.ada.send(self.room, "taken", "other"))
        eve = await Person.connect(await self.server.sign_up("eve"), self.server.port, self.protobuf)
        self.addAsyncCleanup(eve.close)
        await self.refused(103, eve.send(self.room, "k", "let me in"))
        with self.assertRaises(CentrifugeError):
            await eve.subscribe(self.channel)

    async def test_a_wrong_token_and_an_oversized_frame_end_the_connection(self):
        mallory = Person({}, self.server.port, self.protobuf, token="fm_" + "A" * 43)
        await mallory.client.connect()
        self.assertEqual((await mallory.lives("disconnected")).code, 3500)
        zoe = await Person.connect(await self.server.sign_up("zoe"), self.server.port, self.protobuf)
        with self.assertRaises(CentrifugeError):
            await zoe.send(self.room, "k", "x" * 70_000)
        # 3 is the SDK's code for WebSocket's 1009, message too big; unlike others it then connects again.
        self.assertEqual((await zoe.lives("connecting")).code, 3)
        self.assertEqual((await self.ada.rpc("user.get", {"user": self.ada.user["id"]}))["name"], "ada")


class JsonConversation(Conversation, unittest.IsolatedAsyncioTestCase):
    protobuf = False


class ProtobufConversation(Conversation, unittest.IsolatedAsyncioTestCase):
    protobuf = True


if __name__ == "__main__":
    unittest.main(verbosity=2)
