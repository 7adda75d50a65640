"""Django's settings; what differs from start to start comes from the environment, which `start.py` sets."""

import os
from pathlib import Path

HERE = Path(__file__).resolve().parent

SECRET_KEY = os.environ["DJANGO_SECRET_KEY"]
DEBUG = False
ALLOWED_HOSTS = ["127.0.0.1", "localhost"]
ROOT_URLCONF = "urls"
WSGI_APPLICATION = "wsgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True

INSTALLED_APPS = ["django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions", "chat"]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
]
AUTH_PASSWORD_VALIDATORS = [{"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"}]
SESSION_COOKIE_SAMESITE = "Lax"

DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": "127.0.0.1",
        "PORT": os.environ["DATABASE_PORT"],
        "NAME": "postgres",
        "USER": "messenger",
        "PASSWORD": os.environ["DATABASE_PASSWORD"],
        "CONN_MAX_AGE": 60,
    }
}

# The page, and the official SDK as its package ships it.
WHITENOISE_ROOT = HERE.parent / "page"
WHITENOISE_INDEX_FILE = True
SDK = HERE.parent / "node_modules" / "centrifuge" / "dist"

# How news get to the relay: api, outbox, cdc or api_cdc.
MODE = os.environ["MODE"]
RELAY = os.environ["RELAY"]
RELAY_API_KEY = os.environ["RELAY_API_KEY"]
RELAY_TOKEN_KEY = os.environ["RELAY_TOKEN_KEY"]
# Of the outbox; the relay's `num_partitions` is the same.
PARTITIONS = 4
