"""A backend calls the server API by grpcio, the official library of gRPC, and a user hears it by the official SDK. The
messages are made from the field numbers of Centrifugo's api.proto."""

import asyncio
import json
import os
import socket
import subprocess
import tempfile
import unittest

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from centrifuge import Client
from folkmoot import Server
from test_relay import SETTINGS, Connected, Subscribed, token

WAIT_S_MAX = 20
KEY = (("authorization", "apikey a key for gRPC"),)
PACKAGE = "centrifugal.centrifugo.api"
KINDS = {"string": 9, "bytes": 12, "int32": 5, "uint32": 13, "uint64": 4}
ERROR = [("error", 1, "Error")]
FIELDS = {
    "Error": [("code", 1, "uint32"), ("message", 2, "string")],
    "PublishRequest": [("channel", 1, "string"), ("data", 2, "bytes")],
    "PublishResult": [("offset", 1, "uint64"), ("epoch", 2, "string")],
    "PublishResponse": ERROR + [("result", 2, "PublishResult")],
    "PresenceStatsRequest": [("channel", 1, "string")],
    "PresenceStatsResult": [("num_clients", 1, "uint32"), ("num_users", 2, "uint32")],
    "PresenceStatsResponse": ERROR + [("result", 2, "PresenceStatsResult")],
    "HistoryRequest": [("channel", 1, "string"), ("limit", 2, "int32")],
    "Publication": [("data", 2, "bytes"), ("offset", 4, "uint64")],
    "HistoryResult": [("publications", 1, "*Publication"), ("epoch", 2, "string"), ("offset", 3, "uint64")],
    "HistoryResponse": ERROR + [("result", 2, "HistoryResult")],
    "DisconnectRequest": [("user", 1, "string")],
    "DisconnectResponse": ERROR,
    "ConnectionsRequest": [],
    "ConnectionsResponse": ERROR,
}


def messages():
    """The classes of all messages, by their names."""
    file = descriptor_pb2.FileDescriptorProto(name="api.proto", package=PACKAGE, syntax="proto3")
    for name, fields in FIELDS.items():
        message = file.message_type.add(name=name)
        for field, number, kind in fields:
            label = 3 if kind.startswith("*") else 1
            added = message.field.add(name=field, number=number, label=label, type=KINDS.get(kind, 11))
            if kind not in KINDS:
                added.type_name = f".{PACKAGE}.{kind.lstrip('*')}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = {name: pool.FindMessageTypeByName(f"{PACKAGE}.{name}") for name in FIELDS}
    return {name: message_factory.GetMessageClass(one) for name, one in found.items()}


MESSAGES = messages()


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def certify(directory):
    """Makes a certificate for localhost and its key; returns both files."""
    certificate, key = (os.path.join(directory, name) for name in ("cert.pem", "key.pem"))
    name = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    subprocess.run(made + name + ["-out", certificate, "-keyout", key], check=True, capture_output=True)
    return certificate, key


class Backend(unittest.IsolatedAsyncioTestCase):
    """A server, and a channel of gRPC to it."""

    async def start(self, tls=None):
        self.port = free_port()
        settings = {"enabled": True, "port": self.port, "key": "a key for gRPC", "max_receive_message_size": 100_000}
        if tls:
            settings["tls"] = tls
        self.server = await Server.start({**SETTINGS, "grpc_api": settings})
        self.addAsyncCleanup(self.server.stop)

    async def call(self, method, metadata=KEY, **fields):
        """What comes of a call: its answer."""
        request, response = MESSAGES[f"{method}Request"], MESSAGES[f"{method}Response"]
        call = self.channel.unary_unary(
            f"/{PACKAGE}.CentrifugoApi/{method}",
            request_serializer=request.SerializeToString,
            response_deserializer=response.FromString,
        )
        return await call(request(**fields), metadata=metadata, timeout=WAIT_S_MAX)


class Grpc(Backend):
    async def asyncSetUp(self):
        await self.start()
        self.channel = grpc.aio.insecure_channel(f"127.0.0.1:{self.port}")
        self.addAsyncCleanup(self.channel.close)

    async def test_a_backend_publishes_and_its_user_hears_it(self):
        ended, heard = Connected(), Subscribed()
        url = f"ws://127.0.0.1:{self.server.port}/connection/websocket"
        ada = Client(url, events=ended, token=token({"sub": "ada"}))
        self.addAsyncCleanup(ada.disconnect)
        await ada.connect()
        subscription = ada.new_subscription("news:today", events=heard)
        await subscription.subscribe()
        await subscription.ready()
        calls = [self.call("Publish", channel="news:today", data=json.dumps(one).encode()) for one in range(20)]
        offsets = [one.result.offset for one in await asyncio.gather(*calls)]
        self.assertEqual(sorted(offsets), list(range(1, 21)))
        data = [await asyncio.wait_for(heard.publications.get(), WAIT_S_MAX) for _ in range(20)]
        self.assertEqual(sorted(data), list(range(20)))
        stats = (await self.call("PresenceStats", channel="news:today")).result
        self.assertEqual((stats.num_clients, stats.num_users), (1, 1))
        page = (await self.call("History", channel="news:today", limit=-1)).result
        self.assertEqual([json.loads(one.data) for one in page.publications], data[-10:])
        await self.call("Disconnect", user="ada")
        self.assertEqual(await asyncio.wait_for(ended.ended.get(), WAIT_S_MAX), 3503)

    async def test_what_is_refused_has_its_code_or_its_status(self):
        answer = await self.call("Publish", channel="nowhere:x", data=b"1")
        self.assertEqual(answer.error.code, 102)
        wrong = (("authorization", "apikey guess"),)
        for status, method, metadata, fields in [
            (grpc.StatusCode.UNAUTHENTICATED, "Publish", wrong, {}),
            (grpc.StatusCode.UNAUTHENTICATED, "Publish", (), {}),
            (grpc.StatusCode.UNIMPLEMENTED, "Connections", KEY, {}),
            (grpc.StatusCode.RESOURCE_EXHAUSTED, "Publish", KEY, {"data": b"7" * 3_000_000}),
        ]:
            with self.assertRaises(grpc.aio.AioRpcError) as refused:
                await self.call(method, metadata, **fields)
            self.assertEqual(refused.exception.code(), status, refused.exception)
        answer = await self.call("Publish", channel="news:x", data=b"1")
        self.assertEqual(answer.result.offset, 1)


class Encrypted(Backend):
    async def test_a_backend_publishes_over_tls_and_not_in_the_clear(self):
        directory = self.enterContext(tempfile.TemporaryDirectory())
        certificate, key = certify(directory)
        await self.start({"enabled": True, "cert_pem": certificate, "key_pem": key})
        with open(certificate, "rb") as file:
            believed = grpc.ssl_channel_credentials(root_certificates=file.read())
        by_name = (("grpc.ssl_target_name_override", "localhost"),)
        for credentials, is_taken in [(believed, True), (grpc.ssl_channel_credentials(), False), (None, False)]:
            address = f"127.0.0.1:{self.port}"
            if credentials is None:
                self.channel = grpc.aio.insecure_channel(address)
            else:
                self.channel = grpc.aio.secure_channel(address, credentials, by_name)
            self.addAsyncCleanup(self.channel.close)
            if is_taken:
                answer = await self.call("Publish", channel="news:x", data=b"1")
                self.assertEqual(answer.result.offset, 1)
                continue
            with self.assertRaises(grpc.aio.AioRpcError) as refused:
                await self.call("Publish", channel="news:x", data=b"2")
            self.assertEqual(refused.exception.code(), grpc.StatusCode.UNAVAILABLE, refused.exception)


if __name__ == "__main__":
    unittest.main()
