"""The live twin: what CreateLive answers, and retrievals as the live service makes them.

`Lives` are the live sessions, `Live` is the handler in front of them, `Retrieved` is one retrieval with what
the model is given and the violations of both sides, and `LiveTwin` is all of it as a test holds it.
"""

from memmock.live.api import LIVES_PATH, Live, retrieve_path
from memmock.live.retrieved import Retrieved
from memmock.live.sessions import Lives, LiveSession
from memmock.live.twin import LiveTwin, TwinSession

__all__ = [
    "LIVES_PATH",
    "Live",
    "LiveSession",
    "LiveTwin",
    "Lives",
    "Retrieved",
    "TwinSession",
    "retrieve_path",
]
