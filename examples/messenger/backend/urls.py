"""Addresses of the messenger's API; the page is a file."""

from django.urls import path

from chat import accounts, views

urlpatterns = [
    path("api/account", accounts.create),
    path("api/session", accounts.session),
    path("api/tokens", accounts.tokens),
    path("api/rooms", views.rooms),
    path("api/rooms/<int:room>/membership", views.membership),
    path("api/rooms/<int:room>/messages", views.messages),
]
