"""News to the members of a room, each in their personal channel, by the way that was chosen at the start.

`api`: a call after the commit; if it fails, clients notice the gap at the next news or when they connect again.
`outbox`: a row in the same transaction, which the relay takes out.
`cdc`: the same row, read from the database's log; it need not stay, so it is deleted at once.
`api_cdc`: both, with one key: the first to arrive wins, the second is dropped.
"""

import logging
import uuid

from cent import BroadcastRequest, Client
from cent.exceptions import CentError
from django.conf import settings
from django.db import connection, transaction

from .models import Outbox

relay = Client(f"{settings.RELAY}/api", settings.RELAY_API_KEY, timeout=2)


def tell_members(room, news, also=()):
    """Tells everybody in the room, and those in `also`. Call it inside the transaction that changed the room."""
    members = {*room.members.values_list("id", flat=True), *also}
    command = {
        "channels": [f"personal:{member}" for member in sorted(members)],
        "data": {"room": room.id, "version": room.version, **news},
        "idempotency_key": str(uuid.uuid4()),
    }
    if settings.MODE != "api":
        commit(room, command)
    if settings.MODE in ("api", "api_cdc"):
        transaction.on_commit(lambda: call(command))


def commit(room, command):
    row = Outbox.objects.create(method="broadcast", payload=command, partition=room.id % settings.PARTITIONS)
    if settings.MODE == "outbox":
        with connection.cursor() as cursor:
            cursor.execute("NOTIFY outbox")
    else:
        row.delete()


def call(command):
    try:
        relay.broadcast(BroadcastRequest(**command))
    except CentError as error:
        logging.getLogger(__name__).warning("the relay was not told: %s", error)
