"""The inspector: one page that shows every call while it happens, and the resources it asks for.

`Inspector` answers for the page; `Inspected` puts it in front of a handler that has no control API. Nothing
here is called for a retrieval: the page is fed from the journal.
"""

from memmock.inspector.handler import Inspected, Inspector
from memmock.inspector.subject import Subject

__all__ = ["Inspected", "Inspector", "Subject"]
