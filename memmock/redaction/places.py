"""Secrets by their place: what stands in headers and parameters of certain names, and in URLs."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Container, Iterable, Iterator
from functools import lru_cache
from itertools import chain
from urllib.parse import unquote, unquote_plus

from memmock.redaction.hidden import MASK, Values, readable

SECRET_NAME = re.compile(
    "authorization|cookie|(?:api|access|auth|private|subscription|functions|account)[-_]?key|token|secret"
    "|passw(?:or)?d|passphrase|credential|session|signature|x-amz-security|jwt|csrf|xsrf|^x-auth|^sig$",
    re.IGNORECASE,
)
"""What the names of headers and query parameters with a secret in them look like."""
_HARMLESS = re.compile(
    "^access-control-|rate-?limit|(?:page|continuation|next|sync)[-_]?token"
    "|(?:max|min|total|used|remaining|prompt|completion|input|output)[-_]?tokens?"
    "|[-_](?:type|ttl|count|limit|length|expir(?:es|y|ation))(?:[-_](?:in|at))?$",
    re.IGNORECASE,
)

_LEARNED_CHARS, CONFIGURED_CHARS = 8, 4
"""From so many characters on a value is looked for everywhere: shorter ones may be common words."""
MOST_LEARNED = 4096
"""So many values are remembered; of the oldest, half are forgotten at once."""


@lru_cache(1024)
def is_secret(name: str) -> bool:
    """Tell whether a header or a parameter of this name holds a secret."""
    return bool(SECRET_NAME.search(name)) and not _HARMLESS.search(name)


def long(values: Iterable[str], called: str, chars: int = _LEARNED_CHARS) -> Values:
    """Return the values, and what they read with percent escapes undone, that are long enough."""
    values = [value for value in values if len(value) >= chars]
    forms = chain.from_iterable((value, *_unquoted(value)) for value in values)
    return dict.fromkeys((form for form in forms if len(form) >= chars and form.strip('*" ')), called)


def _unquoted(value: str) -> Iterator[str]:
    if "%" in value:
        yield unquote(value)
        yield unquote(value, "latin-1")


# ---- headers

_SCHEME = re.compile(r"[A-Za-z][\w.+-]*[ \t]+(\S.*)", re.DOTALL)
_PARTS = re.compile(r'([\w-]+)="?([^",\s]+)')


def credentials(value: str) -> Iterator[str]:
    """Yield a credential as it is, without its scheme, and what Basic says in Base64."""
    value = value.strip()
    yield value
    if not (found := _SCHEME.fullmatch(value)):
        return
    yield (rest := found[1].strip())
    yield from (part for name, part in _PARTS.findall(rest) if is_secret(name))
    if value[:6].lower().rstrip() == "basic":
        try:
            data = base64.b64decode(rest.translate({45: 43, 95: 47}) + "==")
        except (binascii.Error, ValueError):
            return
        text = readable(data)[0]
        yield text
        yield text.partition(":")[2]


def values_of(name: str, value: str) -> Iterator[str]:
    """Yield the secrets in the value of a header."""
    name = name.lower()
    if "cookie" not in name:
        yield from credentials(value)
        return
    yield value.strip()
    crumbs = value.split(";", 1)[:1] if name.startswith("set-cookie") else value.split(";")
    for crumb in crumbs:
        yield crumb.partition("=")[2].strip().strip('"')


# ---- URLs

_URI_USER = re.compile(r"(?<=://)[^/?#\s]*(?=@)")
_TEXT_USER = re.compile(r"(?<=://)[^/?#\s\"'<>,]*(?=@)")
Parameters = tuple[re.Pattern[str], re.Pattern[str]]
"""What finds the name of a parameter, with what is before its value, and what the value is then."""
_URI_PARAMETERS = re.compile(r"(?:^|(?<=[?&;#]))([^=&;#?]*)="), re.compile(r"[^&#]+")
_TEXT_PARAMETERS = re.compile(r"(?<=[?&;])([^=&?;\s]*)="), re.compile(r"[^&#\s\"'<>]+")


def in_uri(uri: str, names: Container[str]) -> tuple[str, Values]:
    """Return a URL with its user and secret parameters hidden, and their values.

    Args:
        uri: the URL, or the target of a request.
        names: parameters that are hidden besides, in lower case.
    """
    return _in_parts(uri, _URI_USER, _URI_PARAMETERS, names)


def in_text(text: str, names: Container[str]) -> tuple[str, Values]:
    """Return a text with users and secret parameters hidden in its URLs, and their values."""
    return _in_parts(text, _TEXT_USER, _TEXT_PARAMETERS, names)


def _in_parts(
    text: str, users: re.Pattern[str], parameters: Parameters, names: Container[str]
) -> tuple[str, Values]:
    values: Values = {}

    def user(found: re.Match[str]) -> str:
        values.update(long([found[0].partition(":")[2]], "the password in a URL"))
        return MASK

    if "@" in text:
        text = users.sub(user, text)
    if "=" not in text:
        return text, values
    pieces, at = [], 0
    for start, end, name, forms in parameters_in(text, parameters, lambda name: is_hidden(name, names)):
        values |= long(forms, f"the value of the parameter {name}")
        pieces += [text[at:start], MASK]
        at = end
    return "".join([*pieces, text[at:]]), values


def is_hidden(name: str, names: Container[str]) -> bool:
    """Tell whether a parameter is hidden by its name, or is one of `names`, in lower case."""
    return is_secret(name) or name.lower() in names


def parameters_in(
    text: str, parameters: Parameters, is_hidden: Callable[[str], bool]
) -> Iterator[tuple[int, int, str, list[str]]]:
    """Yield where the values of hidden parameters are, their names, and what they read.

    A value may have ";" in it, or end there: what is before that is read too.
    """
    at = 0
    for key in parameters[0].finditer(text):
        if key.start() < at or not is_hidden(name := unquote_plus(key[1]).strip()):
            continue
        if found := parameters[1].match(text, key.end()):
            parts = dict.fromkeys((found[0], found[0].partition(";")[0]))
            yield *found.span(), name, [form for part in parts for form in (part, unquote_plus(part))]
            at = found.end()
