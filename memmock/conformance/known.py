"""What failed before: the trials that are made first the next time, in a file for each provider or consumer.

The file holds what was asked, never the authorization, nor the address with its query string.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import urlsplit

from memmock import documents
from memmock.conformance.case import PLAIN, Case, Form
from memmock.http import Headers

DIRECTORY = ".memmock"
"""Where the files are, in the working directory."""
MOST = 200
"""So many failures are remembered of one provider or consumer."""
T = TypeVar("T")


class Trial(NamedTuple):
    """One way to see something wrong: a case, and what is done with it.

    Attributes:
        kind: what is done, a name of `trials.PROPERTIES`.
        case: its authorization is None: another one is made from `how`.
        how: what else that needs to know, as text.
    """

    kind: str
    case: Case
    how: str = ""


class Failures(Generic[T]):
    """What failed of one thing, in a file.

    Args:
        place: what it failed at; it is not in the file.
        encode: makes JSON data of one failure.
        decode: makes a failure of its data; may raise ValueError, KeyError, TypeError.
        directory: where the file is, made when something is kept.
    """

    def __init__(
        self,
        place: str,
        encode: Callable[[T], dict[str, Any]],
        decode: Callable[[dict[str, Any]], T],
        directory: str | Path = DIRECTORY,
    ) -> None:
        self.path = Path(directory) / f"known-{hashlib.sha256(place.encode()).hexdigest()[:16]}.json"
        self._encode = encode
        self._decode = decode

    def trials(self) -> list[T]:
        """Return what failed, oldest first; none when there is no file, or it is not as it should be."""
        try:
            value = json.loads(self.path.read_bytes())
            return [self._decode(entry) for entry in value["failures"]]
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return []

    def keep(self, trials: Iterable[T]) -> None:
        """Put these in place of those that were there; without any, remove the file.

        Raises:
            OSError: it cannot be written.
        """
        texts = list(dict.fromkeys(json.dumps(self._encode(trial)) for trial in trials))[:MOST]
        if texts:
            lines = ",\n  ".join(texts)
            ignore = self.path.with_name(".gitignore")
            if self.path.parent.name == DIRECTORY and not ignore.exists():
                documents.replace(ignore, b"# Written by memmock\n*\n")
            documents.replace(self.path, f'{{"format": 1, "failures": [\n  {lines}\n]}}\n'.encode())
        else:
            self.path.unlink(missing_ok=True)


class Store(Failures[Trial]):
    """The trials that failed at one provider.

    Args:
        url: the provider; its query string makes no difference.
        directory: where the file is, made when something is kept.
    """

    def __init__(self, url: str, directory: str | Path = DIRECTORY) -> None:
        parts = urlsplit(url)
        place = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
        super().__init__(place, _entry, _trial, directory)


def _entry(trial: Trial) -> dict[str, Any]:
    case = trial.case
    entry: dict[str, Any] = {"kind": trial.kind, "fields": dict(case.fields)}
    if trial.how:
        entry["how"] = trial.how
    form = zip(Form._fields, case.form, PLAIN, strict=True)
    if changed := {name: value for name, value, plain in form if value != plain}:
        entry["form"] = changed
    if case.body is not None:
        entry["body"] = base64.b64encode(case.body).decode()
    if case.method != "POST":
        entry["method"] = case.method
    if headers := [pair for pair in case.headers if pair[0].lower() != "authorization"]:
        entry["headers"] = headers
    return entry


def _trial(entry: dict[str, Any]) -> Trial:
    headers: Headers = tuple((str(name), str(value)) for name, value in entry.get("headers", ()))
    body = entry.get("body")
    case = Case(
        dict(entry["fields"]),
        PLAIN._replace(**entry.get("form", {})),
        body=None if body is None else base64.b64decode(body),
        method=str(entry.get("method", "POST")),
        headers=headers,
    )
    return Trial(str(entry["kind"]), case, str(entry.get("how", "")))
