"""Accounts, sessions, and the tokens by which a session may connect to the relay."""

import time

import jwt
from django.conf import settings
from django.contrib.auth import authenticate, login, logout
from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError
from django.views.decorators.csrf import ensure_csrf_cookie
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from .answers import Refused, answers, signed_in, text

NAME_CHARS_MAX = 32
PASSWORD_CHARS_MAX = 128
TOKEN_S = 600


def person(user):
    return {"id": user.id, "name": user.username}


@require_POST
@answers
def create(request):
    name, password = text(request, "name", NAME_CHARS_MAX), text(request, "password", PASSWORD_CHARS_MAX)
    try:
        validate_password(password)
        user = User.objects.create_user(name, password=password)
    except ValidationError as error:
        raise Refused(" ".join(error.messages), "password") from None
    except IntegrityError:
        raise Refused("the name is taken", "name") from None
    login(request, user)
    return {"me": person(user)}


@ensure_csrf_cookie
@require_http_methods(["GET", "POST", "DELETE"])
@answers
def session(request):
    if request.method == "GET":
        return {"me": person(request.user) if request.user.is_authenticated else None}
    if request.method == "DELETE":
        logout(request)
        return {"me": None}
    name, password = text(request, "name", NAME_CHARS_MAX), text(request, "password", PASSWORD_CHARS_MAX)
    user = authenticate(request, username=name, password=password)
    if user is None:
        raise Refused("name or password is wrong", status=401)
    login(request, user)
    return {"me": person(user)}


@require_GET
@answers
@signed_in
def tokens(request):
    """For the connection, and for the personal channel, which nobody else may read."""
    claims = {"sub": str(request.user.id), "exp": int(time.time()) + TOKEN_S}
    channel = f"personal:{request.user.id}"
    return {
        "url": settings.RELAY.replace("http", "ws", 1) + "/connection/websocket",
        "channel": channel,
        "connection": jwt.encode(claims, settings.RELAY_TOKEN_KEY),
        "subscription": jwt.encode({**claims, "channel": channel}, settings.RELAY_TOKEN_KEY),
    }
