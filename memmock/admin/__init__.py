"""The control API, for clients in any language: `Admin` in front of a provider."""

from memmock.admin.api import PREFIX, ROUTES, Admin, openapi

__all__ = ["PREFIX", "ROUTES", "Admin", "openapi"]
