"""The control API, for clients in any language: `Admin` in front of a provider."""

from memmock.admin.api import PREFIX, ROUTES, Admin, openapi
from memmock.admin.gate import is_local

__all__ = ["PREFIX", "ROUTES", "Admin", "is_local", "openapi"]
