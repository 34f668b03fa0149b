"""Takes secrets out of requests, replies and texts, before they are stored or shown.

A secret is hidden by its place (a header, a query parameter, a JSON field) and by its value, wherever that
stands and however it is escaped. Texts are searched as UTF-8 bytes: first as they are, then as they read when
their escapes are undone, with each find traced back to the bytes it came from. Nothing else is changed.
"""

from memmock.redaction.hidden import MASK
from memmock.redaction.places import SECRET_NAME
from memmock.redaction.redactor import Redactor
from memmock.redaction.short import mask_of

__all__ = ["MASK", "SECRET_NAME", "Redactor", "mask_of"]
