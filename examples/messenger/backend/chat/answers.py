"""What all views share: JSON in, JSON out, and refusals that name the field."""

import json
from functools import wraps

from django.http import JsonResponse


class Refused(Exception):
    def __init__(self, text, field=None, status=400):
        super().__init__(text)
        self.field, self.status = field, status


def answers(view):
    """A view that returns what becomes JSON, and may raise `Refused`."""

    @wraps(view)
    def answered(request, **arguments):
        try:
            return JsonResponse(view(request, **arguments))
        except Refused as refused:
            return JsonResponse({"error": str(refused), "field": refused.field}, status=refused.status)

    return answered


def signed_in(view):
    @wraps(view)
    def checked(request, **arguments):
        if not request.user.is_authenticated:
            raise Refused("sign in first", status=401)
        return view(request, **arguments)

    return checked


def text(request, field, longest):
    """A text of the request's body, between one and `longest` characters."""
    try:
        value = json.loads(request.body)[field]
    except (ValueError, KeyError, TypeError):
        raise Refused(f"the body must be JSON with {field}", field) from None
    if not isinstance(value, str) or not 1 <= len(value.strip()) <= longest:
        raise Refused(f"{field} must have 1 to {longest} characters", field)
    return value.strip()


def number(request, name, otherwise):
    """A number of the query."""
    given = request.GET.get(name)
    if given is None:
        return otherwise
    if not given.isascii() or not given.isdigit() or len(given) > 18:
        raise Refused(f"{name} must be a number", name)
    return int(given)
