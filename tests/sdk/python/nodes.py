"""Several nodes of one server over one PostgreSQL, as `make cluster` starts them, and an address before them, as a
load balancer has one. A node that is killed is started again by the script."""

import asyncio
import os
import random
import signal
import socket
import subprocess
import urllib.error
import urllib.request

from folkmoot import Proxy, sign_up

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../deploy/cluster")
# The first start makes the database; a machine that builds at the same time is slow.
START_S_MAX = 120
LOOK_EVERY_S = 0.1


def _is_free(port):
    with socket.socket() as tried:
        try:
            tried.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _free_ports(count):
    """The first of so many ports in a row that nobody listens at."""
    while True:
        first = random.randrange(20_000, 30_000)
        if all(_is_free(first + index) for index in range(count)):
            return first


class _Preferred:
    """Where a balancer leads: one node while it is healthy, the next one otherwise."""

    def __init__(self, nodes, preferred):
        self._nodes = nodes
        self._preferred = preferred

    @property
    def port(self):
        ports = self._nodes.ports
        in_order = [(self._preferred - 1 + index) % len(ports) + 1 for index in range(len(ports))]
        healthy = [number for number in in_order if number in self._nodes.healthy]
        return ports[(healthy or in_order)[0] - 1]


class Nodes:
    """So many nodes, numbered from 1."""

    def __init__(self, count):
        first = _free_ports(count)
        self.ports = [first + index for index in range(count)]
        self.healthy = set()
        self._script = None
        self._balancers = []

    @classmethod
    async def start(cls, count):
        nodes = cls(count)
        environment = {
            **os.environ,
            "FOLKMOOT": os.environ["FOLKMOOT_BINARY"],
            "N": str(count),
            "PORT": str(nodes.ports[0]),
            "STORE": "",
            "DATA": "",
            "FOLKMOOT_MESSAGES_PER_SECOND": "0",
        }
        # A group of its own, so that all of it can be ended.
        nodes._script = await asyncio.create_subprocess_exec(
            SCRIPT, env=environment, stdout=asyncio.subprocess.DEVNULL, start_new_session=True
        )
        for number in range(1, count + 1):
            await nodes.serves(number)
        return nodes

    async def balancer(self, preferred):
        """A proxy that leads to the node `preferred` while that one is healthy, else to the next."""
        proxy = await Proxy.start(_Preferred(self, preferred))
        self._balancers.append(proxy)
        return proxy

    def kill(self, number):
        """SIGKILL; the balancers lead elsewhere until it `serves` again."""
        self.healthy.discard(number)
        listening = f"--listen 127.0.0.1:{self.ports[number - 1]} "
        found = subprocess.run(["pgrep", "-f", "--", listening], capture_output=True, check=True)
        for pid in found.stdout.split():
            os.kill(int(pid), signal.SIGKILL)

    async def serves(self, number):
        """Returns once a node answers."""
        await asyncio.wait_for(self._until_it_serves(number), START_S_MAX)
        self.healthy.add(number)

    async def _until_it_serves(self, number):
        while not await asyncio.to_thread(self._answers, number):
            if self._script.returncode is not None:
                raise AssertionError(f"the nodes have ended with {self._script.returncode}")
            await asyncio.sleep(LOOK_EVERY_S)

    def _answers(self, number):
        page = f"http://127.0.0.1:{self.ports[number - 1]}/healthz"
        try:
            with urllib.request.urlopen(page, timeout=START_S_MAX) as response:
                return response.status == 200
        except (urllib.error.URLError, OSError):
            return False

    async def sign_up(self, name):
        """Makes an account at the first node that is healthy; returns the answer's body."""
        return await sign_up(_Preferred(self, 1).port, name)

    async def stop(self):
        for balancer in self._balancers:
            await balancer.stop()
        if self._script.returncode is None:
            self._script.terminate()
            await self._script.wait()
