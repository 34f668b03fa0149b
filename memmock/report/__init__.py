"""Reports of what a run of checks found: for a terminal, as JSON, as JUnit XML, and as a page of HTML.

`report_of` takes the secrets out of a provider's result, in `shown`; the formats only see what is left, in
`parts`, which a consumer's result becomes too. Nothing here is printed or written to a file.
"""

from memmock.report.document import as_json
from memmock.report.html import as_html
from memmock.report.junit import as_junit
from memmock.report.parts import Report
from memmock.report.shown import report_of
from memmock.report.text import as_text

FORMATS = {"text": as_text, "json": as_json, "junit": as_junit, "html": as_html}
"""What makes a report a text, by the name of its format. Each text ends with a line break."""

__all__ = ["FORMATS", "Report", "as_html", "as_json", "as_junit", "as_text", "report_of"]
