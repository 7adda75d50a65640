"""Rooms and messages. Whatever changes a room locks its row, so that versions follow each other as commits do."""

from django.db import IntegrityError, transaction
from django.views.decorators.http import require_http_methods

from .accounts import person
from .answers import Refused, answers, number, signed_in, text
from .models import Message, Room
from .publishing import tell_members

NAME_CHARS_MAX = 64
TEXT_CHARS_MAX = 4_000
PAGE = 50


def described(message):
    return {
        "version": message.version,
        "user": person(message.user),
        "text": message.text,
        "sent_at": message.sent_at.isoformat(),
    }


def changed(room):
    """The room, locked and with its next version."""
    room = Room.objects.select_for_update().filter(id=room).first()
    if room is None:
        raise Refused("no such room", status=404)
    room.version += 1
    room.save(update_fields=["version"])
    return room


@require_http_methods(["GET", "POST"])
@answers
@signed_in
def rooms(request):
    if request.method == "GET":
        mine = set(request.user.rooms.values_list("id", flat=True))
        every = Room.objects.order_by("name").values("id", "name", "version")
        return {"rooms": [{**room, "joined": room["id"] in mine} for room in every]}
    try:
        with transaction.atomic():
            room = Room.objects.create(name=text(request, "name", NAME_CHARS_MAX))
            room.members.add(request.user)
            tell_members(room, {"type": "joined", "name": room.name, "user": person(request.user)})
    except IntegrityError:
        raise Refused("there is a room of that name", "name") from None
    return {"id": room.id}


@require_http_methods(["POST", "DELETE"])
@answers
@signed_in
@transaction.atomic
def membership(request, room):
    room = changed(room)
    if request.method == "POST":
        room.members.add(request.user)
        news = "joined"
    else:
        room.members.remove(request.user)
        news = "left"
    tell_members(room, {"type": news, "name": room.name, "user": person(request.user)}, also=[request.user.id])
    return {"version": room.version}


@require_http_methods(["GET", "POST"])
@answers
@signed_in
@transaction.atomic
def messages(request, room):
    if not request.user.rooms.filter(id=room).exists():
        raise Refused("join the room first", status=403)
    if request.method == "GET":
        # The version is read first: what comes later is told by the relay.
        version = Room.objects.values_list("version", flat=True).get(id=room)
        found = Message.objects.filter(room=room, version__gt=number(request, "after", 0)).select_related("user")
        newest = list(found.order_by("-version")[: PAGE + 1])
        shown = [described(message) for message in reversed(newest[:PAGE])]
        return {"version": version, "complete": len(newest) <= PAGE, "messages": shown}
    words = text(request, "text", TEXT_CHARS_MAX)
    room = changed(room)
    message = Message.objects.create(room=room, user=request.user, text=words, version=room.version)
    tell_members(room, {"type": "message", "message": described(message)})
    return {"version": room.version}
