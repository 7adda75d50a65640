"""The real folkmoot binary on a free port, and a TCP proxy that can cut the connections to it."""

import asyncio
import json
import os
import re
import shutil
import tempfile
import urllib.request

# A start replays the log; a cold machine needs a while, a broken server never says the line.
START_S_MAX = 20
WAIT_S_MAX = 20


class Server:
    """One server process; its port changes with every launch, its data stays."""

    def __init__(self, relay_settings=None):
        """The chat, or with settings a relay of another backend's channels."""
        self.data = tempfile.mkdtemp(prefix="folkmoot-sdk-")
        self._flags = ["--listen", "127.0.0.1:0", "--data", self.data, "--messages-per-second", "0"]
        if relay_settings is not None:
            file = os.path.join(self.data, "relay.json")
            with open(file, "w") as settings:
                json.dump(relay_settings, settings)
            self._flags = ["relay", "--at", "127.0.0.1:0", "--settings", file]
        self.port = None
        self._process = None
        self._reader = None

    @classmethod
    async def start(cls, relay_settings=None):
        server = cls(relay_settings)
        await server.launch()
        return server

    async def launch(self):
        """Starts the process on the data directory; returns once it listens."""
        binary = os.environ.get("FOLKMOOT_BINARY")
        if not binary:
            raise RuntimeError("FOLKMOOT_BINARY must name the server; run tests/sdk/run")
        self._process = await asyncio.create_subprocess_exec(
            binary, *self._flags, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        self.port = await asyncio.wait_for(self._address(), START_S_MAX)
        # Somebody must read on, or the server stands still at a full pipe.
        self._reader = asyncio.create_task(self._drain())

    async def _address(self):
        said = []
        while line := await self._process.stdout.readline():
            said.append(line.decode())
            if address := re.search(r"http://127\.0\.0\.1:(\d+)", said[-1]):
                return int(address[1])
        raise RuntimeError("the server ended: " + "".join(said))

    async def _drain(self):
        while await self._process.stdout.readline():
            pass

    async def kill(self):
        """SIGKILL; returns once the process is gone."""
        self._process.kill()
        await self._process.wait()
        await self._reader

    async def stop(self):
        await self.kill()
        shutil.rmtree(self.data, ignore_errors=True)

    async def sign_up(self, name):
        """Makes an account over HTTP; returns the answer's body."""
        return await sign_up(self.port, name)


async def sign_up(port, name):
    """Makes an account over HTTP, at the server of that port; returns the answer's body."""
    return await asyncio.to_thread(_sign_up, port, name)


def _sign_up(port, name):
    body = json.dumps({"name": name, "password": f"{name}'s password", "device": "test"})
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/api/v1/accounts",
        data=body.encode(),
        headers={"content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=WAIT_S_MAX) as response:
        return json.load(response)


class Proxy:
    """Forwards to the server as it is at the time of each connection."""

    def __init__(self, target):
        self.target = target
        self.port = None
        self._listener = None
        self._open = True
        self._writers = set()

    @classmethod
    async def start(cls, target):
        proxy = cls(target)
        proxy._listener = await asyncio.start_server(proxy._accept, "127.0.0.1", 0)
        proxy.port = proxy._listener.sockets[0].getsockname()[1]
        return proxy

    async def _accept(self, reader, writer):
        if not self._open:
            writer.transport.abort()
            return
        try:
            upstream = await asyncio.open_connection("127.0.0.1", self.target.port)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, upstream[1]}
        await asyncio.gather(self._pipe(reader, upstream[1]), self._pipe(upstream[0], writer))

    async def _pipe(self, reader, writer):
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        writer.close()
        self._writers.discard(writer)

    def cut(self):
        """Cuts every connection without a goodbye and refuses new ones until `restore`."""
        self._open = False
        for writer in self._writers:
            writer.transport.abort()

    def restore(self):
        self._open = True

    async def stop(self):
        self.cut()
        self._listener.close()
        await self._listener.wait_closed()
