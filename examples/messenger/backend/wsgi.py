"""What gunicorn serves: Django, and the SDK's files beside the page."""

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from whitenoise import WhiteNoise

application = WhiteNoise(get_wsgi_application())
application.add_files(settings.SDK, prefix="sdk/")
