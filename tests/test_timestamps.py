from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memmock.rules.timestamps import is_rfc3339


@pytest.mark.parametrize(
    "text",
    [
        "2026-05-18T08:12:40Z",
        "2026-05-18t08:12:40z",
        "2026-05-18T08:12:40+08:00",
        "2026-05-18T08:12:40-00:00",
        "2026-05-18T08:12:40+23:59",
        "2026-05-18T08:12:40-23:59",
        "2026-05-18T08:12:40.5Z",
        "2026-05-18T08:12:40." + "123456789" * 9 + "Z",
        "2026-12-31T23:59:59Z",
        "2024-02-29T00:00:00Z",
        "2000-02-29T00:00:00Z",
        "0000-02-29T00:00:00Z",
        "0000-01-01T00:00:00Z",
        "9999-12-31T23:59:59Z",
    ],
)
def test_date_time_of_the_rfc_passes(text):
    assert is_rfc3339(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "1779063160",
        "2026-05-18",
        "2026-05-18T08:12:40",  # no offset
        "2026-05-18 08:12:40Z",
        "2026-05-18_08:12:40Z",
        "2026-05-18T08:12Z",
        "2026-05-18T08:12:40.Z",
        "2026-05-18T08:12:40,5Z",
        "2026-05-18T08:12:40+0800",
        "2026-05-18T08:12:40+08",
        "2026-05-18T08:12:40 +08:00",
        "2026-05-18T08:12:40+08:60",
        "2026-05-18T08:12:40+24:00",
        "2026-05-18T08:12:40UTC",
        "2026-05-18T08:12:40Z ",
        "2026-05-18T08:12:40Z\n",
        " 2026-05-18T08:12:40Z",
        "26-05-18T08:12:40Z",
        "12026-05-18T08:12:40Z",
        "+2026-05-18T08:12:40Z",
        "2026-5-18T08:12:40Z",
        "20260518T081240Z",
        "2026-138T08:12:40Z",
        "2026-00-18T08:12:40Z",
        "2026-13-18T08:12:40Z",
        "2026-05-00T08:12:40Z",
        "2026-05-32T08:12:40Z",
        "2026-04-31T08:12:40Z",
        "2026-02-29T08:12:40Z",
        "1900-02-29T08:12:40Z",
        "2026-05-18T24:00:00Z",
        "2026-05-18T08:60:00Z",
        "2026-05-18T08:12:61Z",
        "２０２６-05-18T08:12:40Z",
        "2026-05-18T08:12:4٠Z",
        "2026-05-18T08:12:40−08:00",
    ],
)
def test_anything_else_fails(text):
    assert not is_rfc3339(text)


@pytest.mark.parametrize(
    ("text", "possible"),
    [
        ("2016-12-31T23:59:60Z", True),
        ("2016-12-31T23:59:60.9Z", True),
        ("2024-02-29T23:59:60Z", True),
        ("2024-02-28T23:59:60Z", False),
        ("2017-01-01T07:59:60+08:00", True),
        ("2016-12-31T07:59:60+08:00", False),
        ("2016-12-31T15:59:60-08:00", True),
        ("2016-12-30T15:59:60-08:00", False),
        ("2017-01-01T15:59:60-08:00", False),
        ("2016-12-31T23:59:60+08:00", False),
        ("2016-12-31T23:58:60Z", False),
        ("2016-12-31T23:59:61Z", False),
        ("0000-01-01T00:59:60+01:00", True),
        ("9999-12-31T22:59:60-01:00", True),
        ("2016-12-30T23:59:60Z", False),
    ],
)
def test_leap_second_passes_only_at_the_end_of_a_month_in_utc(text, possible):
    assert is_rfc3339(text) is possible


OFFSETS = st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(st.datetimes(timezones=OFFSETS | st.just(UTC)))
def test_every_datetime_with_an_offset_of_minutes_passes(when):
    assert is_rfc3339(when.isoformat())
    assert not is_rfc3339(when.replace(tzinfo=None).isoformat())
    assert not is_rfc3339(when.isoformat(" "))


@given(
    st.tuples(
        st.integers(1, 9999), st.integers(0, 13), st.integers(0, 32), st.integers(0, 25), st.integers(0, 61),
        st.integers(0, 59), st.integers(0, 24), st.integers(0, 60),
    )
)  # fmt: skip
def test_fields_pass_as_datetime_takes_them(fields):
    *when, offset_hours, offset_minutes = fields
    text = "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}+{:02}:{:02}".format(*fields)
    try:
        datetime(*when, tzinfo=UTC)
    except ValueError:
        possible = False
    else:
        possible = offset_hours < 24 and offset_minutes < 60

    assert is_rfc3339(text) is possible


@given(
    st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1)).map(
        lambda when: when.replace(day=1, hour=0, minute=0, second=0)
    ),
    st.integers(-1439, 1439),
)
def test_leap_second_passes_at_every_offset(month, offset):
    local = month - timedelta(minutes=1) + timedelta(minutes=offset)
    sign = "-" if offset < 0 else "+"
    suffix = f":60{sign}{abs(offset) // 60:02}:{abs(offset) % 60:02}"

    assert is_rfc3339(local.isoformat()[:16] + suffix)
    assert not is_rfc3339((local - timedelta(minutes=1)).isoformat()[:16] + suffix)
    assert not is_rfc3339((local - timedelta(days=1)).isoformat()[:16] + suffix)


@given(st.text())
def test_any_text_can_be_judged(text):
    assert is_rfc3339(text) in (True, False)
