"""Rooms, their members, their messages, and the outbox through which the relay hears of them."""

from django.contrib.auth.models import User
from django.db import models
from django.db.models.functions import Now


class Room(models.Model):
    """Each change of a room gets the next version, so that a client notices what it has missed."""

    name = models.CharField(max_length=64, unique=True)
    version = models.BigIntegerField(default=0)
    members = models.ManyToManyField(User, related_name="rooms")


class Message(models.Model):
    room = models.ForeignKey(Room, on_delete=models.CASCADE, related_name="messages")
    user = models.ForeignKey(User, on_delete=models.PROTECT)
    text = models.TextField()
    sent_at = models.DateTimeField(auto_now_add=True)
    # Of the room, after this message.
    version = models.BigIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["room", "version"], name="one_message_per_version")]


class Outbox(models.Model):
    """What the relay is to do, committed with what it tells of."""

    id = models.BigAutoField(primary_key=True)
    method = models.TextField(db_default="publish")
    payload = models.JSONField()
    partition = models.IntegerField(db_default=0)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "centrifugo_outbox"
