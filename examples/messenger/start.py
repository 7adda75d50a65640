"""Starts the three programs of the messenger, and starts the relay again if it dies.

PostgreSQL keeps its data in the directory of `--data`; secrets are made there at the first start. Everything listens on
127.0.0.1 and ends with this process.
"""

import argparse
import json
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
MODES = ["api", "outbox", "cdc", "api_cdc"]
# Between the death of a relay and the next start.
PAUSE_S = 0.2
STARTS_S_MAX = 60


def main():
    choices = arguments()
    data = choices.data.resolve()
    data.mkdir(parents=True, exist_ok=True)
    kept = kept_secrets(data / "secrets.json")
    database_port, relay_port = free_port(), free_port()
    programs = []
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        database = PostgreSQL(data, kept["database"], database_port)
        programs.append(database.process)
        dsn = f"postgres://messenger:{kept['database']}@127.0.0.1:{database_port}/postgres"
        page = f"http://127.0.0.1:{choices.port or free_port()}"
        environment = os.environ | {
            "DATABASE_PORT": str(database_port),
            "DATABASE_PASSWORD": kept["database"],
            "DJANGO_SECRET_KEY": kept["django"],
            "DJANGO_SETTINGS_MODULE": "settings",
            "MODE": choices.mode,
            "PAGE": page,
            "RELAY": f"http://127.0.0.1:{relay_port}",
            "RELAY_API_KEY": kept["api"],
            "RELAY_TOKEN_KEY": kept["token"],
        }
        django("migrate", environment)
        settings = data / "relay.json"
        settings.write_text(json.dumps(relay_settings(choices.mode, kept, dsn, page), indent=2))
        settings.chmod(0o600)
        relay = start_relay(relay_port, settings)
        programs.append(relay)
        programs.append(start_pages(page, environment))
        await_port(int(page.rsplit(":", 1)[1]))
        print(f"the messenger is at {page}, in mode {choices.mode}", flush=True)
        while True:
            time.sleep(PAUSE_S)
            for program in programs:
                if program is not relay and program.poll() is not None:
                    sys.exit(f"{program.args[0]} has ended with {program.returncode}")
            if relay.poll() is not None:
                print(f"the relay has ended with {relay.returncode} and is started again", flush=True)
                programs.remove(relay)
                relay = start_relay(relay_port, settings)
                programs.append(relay)
    except KeyboardInterrupt:
        pass
    finally:
        for program in reversed(programs):
            program.terminate()
        for program in programs:
            program.wait()


def arguments():
    parser = argparse.ArgumentParser(description="A messenger in Django, with Folkmoot's relay for what is live.")
    parser.add_argument("--mode", choices=MODES, default="outbox", help="how messages get to the relay (default: outbox)")
    parser.add_argument("--port", type=int, default=8080, help="of the page; 0 takes a free one (default: 8080)")
    parser.add_argument("--data", type=Path, default=HERE / "data", help="directory of the database and the secrets")
    return parser.parse_args()


def relay_settings(mode, kept, dsn, page):
    """The same names as in Centrifugo's configuration."""
    consumers = []
    if mode == "outbox":
        consumers.append({
            "name": "messenger",
            "type": "postgresql",
            "postgresql": {"dsn": dsn, "num_partitions": 4, "partition_notification_channel": "outbox"},
        })
    if mode in ("cdc", "api_cdc"):
        consumers.append({"name": "messenger", "type": "postgresql_cdc", "postgresql_cdc": {"dsn": dsn}})
    return {
        "client": {"token": {"hmac_secret_key": kept["token"]}, "allowed_origins": [page]},
        "http_api": {"key": kept["api"]},
        "channel": {
            "namespaces": [
                # One channel per person, which brings the news of all of that person's rooms.
                {"name": "personal", "history_size": 300, "history_ttl": "600s", "force_recovery": True}
            ]
        },
        "consumers": consumers,
    }


class PostgreSQL:
    """A server of its own; its files belong to its user where root starts it, whom it refuses."""

    def __init__(self, data, password, port):
        self.binaries = self.find_binaries()
        self.owner = pwd.getpwnam("postgres") if os.getuid() == 0 else None
        directory = data / "postgresql"
        if self.owner is not None:
            # On the way to its own files, which nobody else reads.
            data.chmod(data.stat().st_mode | 0o011)
        if not (directory / "PG_VERSION").exists():
            self.make(directory, password)
        command = [self.binaries / "postgres", "-D", directory, "-c", "listen_addresses=127.0.0.1", "-c", f"port={port}",
                   "-c", f"unix_socket_directories={directory}", "-c", "wal_level=logical", "-c", "max_slot_wal_keep_size=1GB"]
        with open(data / "postgresql.log", "ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, **self.identity())
        await_port(port)

    @staticmethod
    def find_binaries():
        debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
        if debian:
            return debian[-1]
        found = shutil.which("postgres")
        if found is None:
            sys.exit("messenger: needs PostgreSQL (Debian: apt-get install postgresql)")
        return Path(found).parent

    def identity(self):
        if self.owner is None:
            return {}
        return {"user": self.owner.pw_uid, "group": self.owner.pw_gid, "extra_groups": []}

    def make(self, directory, password):
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(mode=0o700)
        word = directory.parent / "password"
        word.write_text(password)
        word.chmod(0o600)
        if self.owner is not None:
            for path in (directory, word):
                os.chown(path, self.owner.pw_uid, self.owner.pw_gid)
        command = [self.binaries / "initdb", "--pgdata", directory, "--username", "messenger", "--pwfile", word,
                   "--auth", "scram-sha-256", "--encoding", "UTF8", "--no-instructions"]
        try:
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, **self.identity())
        finally:
            word.unlink()


def start_relay(port, settings):
    process = subprocess.Popen([os.environ["FOLKMOOT_BINARY"], "relay", "--at", f"127.0.0.1:{port}", "--settings", settings])
    print(f"the relay has process id {process.pid}", flush=True)
    return process


def start_pages(page, environment):
    address = page.removeprefix("http://")
    command = [Path(sys.executable).parent / "gunicorn", "--bind", address, "--threads", "16", "--chdir", HERE / "backend",
               "--log-level", "warning", "wsgi:application"]
    return subprocess.Popen(command, env=environment)


def django(command, environment):
    program = [sys.executable, "-m", "django", command, "--pythonpath", HERE / "backend", "--verbosity", "0"]
    subprocess.run(program, check=True, env=environment)


def kept_secrets(path):
    if not path.exists():
        names = ["database", "django", "token", "api"]
        path.write_text(json.dumps({name: secrets.token_urlsafe(32) for name in names}))
        path.chmod(0o600)
    return json.loads(path.read_text())


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def await_port(port):
    until = time.monotonic() + STARTS_S_MAX
    while time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    sys.exit(f"nobody listens on port {port} after {STARTS_S_MAX} s")


if __name__ == "__main__":
    main()
