"""Two people on different nodes of one server, through the official Python SDK. The node that one of them is connected
to is killed while both talk; the SDK finds another node behind the same address and goes on there."""

import asyncio
import unittest

from centrifuge import CentrifugeError, ReplyError

from nodes import Nodes
from person import Person

NODES = 3
MESSAGES = 60
KILLED_AFTER = 20
# A node that is lost is missed for a lease; then its rooms and users are loaded elsewhere.
TAKE_OVER_S_MAX = 60


async def acknowledged(person, room, body):
    """Sends a text under its key until it is acknowledged, as an application does; returns its number."""
    until = asyncio.get_running_loop().time() + TAKE_OVER_S_MAX
    while True:
        try:
            return (await person.send(room, body, body))["seq"]
        except CentrifugeError as error:
            is_worth_another = not isinstance(error, ReplyError) or error.temporary
            if not is_worth_another or asyncio.get_running_loop().time() > until:
                raise


async def talk(person, room, bodies, said=lambda index: None):
    """One after the other; `said(index)` hears of each acknowledgement. Returns the numbers."""
    seqs = []
    for index, body in enumerate(bodies):
        seqs.append(await acknowledged(person, room, body))
        said(index)
    return seqs


async def heard(stream, count):
    """The next so many events of the room's stream: without a gap, none twice."""
    events = []
    while len(events) < count:
        offset, data = await stream.events.next(lambda item: item[0], TAKE_OVER_S_MAX)
        events.append((offset, data))
    offsets = [offset for offset, _ in events]
    assert offsets == list(range(offsets[0], offsets[0] + count)), offsets
    return [data for _, data in events]


class ANodeDies(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.nodes = await Nodes.start(NODES)
        self.addAsyncCleanup(self.nodes.stop)

    async def two_in_a_room(self, protobuf, adas_node, bos_node):
        people = []
        for name, node in (("ada", adas_node), ("bo", bos_node)):
            account = await self.nodes.sign_up(f"{name}.{'protobuf' if protobuf else 'json'}")
            balancer = await self.nodes.balancer(node)
            person = await Person.connect(account, balancer.port, protobuf)
            self.addAsyncCleanup(person.close)
            people.append(person)
        ada, bo = people
        room = (await ada.rpc("room.create", {"name": "Tea"}))["id"]
        invite = await ada.rpc("invite.create", {"room": room})
        await bo.rpc("invite.accept", {"code": invite["code"]})
        return ada, bo, room

    async def survives(self, protobuf, killed, other):
        ada, bo, room = await self.two_in_a_room(protobuf, other, killed)
        streams = [await person.subscribe(f"room:{room}") for person in (ada, bo)]
        for stream in streams:
            await stream.subscribed.next()
        said = {name: [f"{name} {index}" for index in range(MESSAGES)] for name in ("ada", "bo")}

        def kill_after_some(index):
            if index == KILLED_AFTER:
                self.nodes.kill(killed)

        seqs = await asyncio.gather(
            talk(ada, room, said["ada"]), talk(bo, room, said["bo"], kill_after_some)
        )
        for own in seqs:
            self.assertEqual(own, sorted(own))

        events, bos = [await heard(stream, 2 * MESSAGES) for stream in streams]
        self.assertEqual(bos, events)
        self.assertEqual([event["seq"] for event in events], list(range(1, 2 * MESSAGES + 1)))
        for name, bodies in said.items():
            own = [event["body"] for event in events if event["body"].startswith(f"{name} ")]
            self.assertEqual(own, bodies)
        # The acknowledgements name the places where the messages are.
        self.assertEqual(sorted(seqs[0] + seqs[1]), [event["seq"] for event in events])

        # Bo's connection died with its node, and what was missed came by recovery; no stream has more to say.
        self.assertTrue((await streams[1].subscribed.next()).recovered)
        await acknowledged(bo, room, "goodbye")
        for stream in streams:
            self.assertEqual((await heard(stream, 1))[0]["body"], "goodbye")
            self.assertTrue(stream.events.empty)

    async def test_nothing_acknowledged_is_lost_doubled_or_out_of_order(self):
        await self.survives(protobuf=False, killed=1, other=2)
        await self.nodes.serves(1)
        await self.survives(protobuf=True, killed=2, other=3)


if __name__ == "__main__":
    unittest.main()
