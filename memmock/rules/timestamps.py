"""RFC 3339 date-times, judged exactly.

`datetime.fromisoformat` takes much that RFC 3339 does not (a space for the `T`, no offset, `20260102`) and
refuses some that it does (leap seconds, the year 0000). This module only judges; it builds no time.
"""

from __future__ import annotations

import calendar
import re

# [0-9], because \d would take the digits of every script
_DATE_TIME = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.[0-9]+)?"
    r"(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))"
)
_DAY = 24 * 60
"""The minutes of a day."""


def is_rfc3339(text: str) -> bool:
    """Return whether `text` is an RFC 3339 date-time, such as `2026-05-18T08:12:40.5+08:00`.

    A leap second counts only where one can be: at 23:59:60 UTC on the last day of a month. The year 0000
    is a leap year. `-00:00` (the local offset is not known) is allowed.
    """
    match = _DATE_TIME.fullmatch(text)
    if match is None:
        return False
    year, month, day, hour, minute, second = map(int, match.group(1, 2, 3, 4, 5, 6))
    offset_hour, offset_minute = int(match[8] or 0), int(match[9] or 0)
    if not 1 <= month <= 12 or hour > 23 or minute > 59 or offset_hour > 23 or offset_minute > 59:
        return False
    last_day = calendar.monthrange(year, month)[1]
    if not 1 <= day <= last_day:
        return False
    if second < 60:
        return True
    offset = (offset_hour * 60 + offset_minute) * (-1 if match[7] == "-" else 1)
    days_off, utc_minute = divmod(hour * 60 + minute - offset, _DAY)
    # the day in UTC, counted from the first of the written month; day 0 is the last of the month before
    return second == 60 and utc_minute == _DAY - 1 and day + days_off in (0, last_day)
