"""Other ways to a job than its page: requests, commands and queries to copy."""

from typing import NamedTuple
from uuid import UUID

_KEY = '-H "Authorization: Bearer $KEY"'
_JSON = "-H 'Content-Type: application/json'"

_RUNS = """\
SELECT scheduled_time, status, lateness_ms, completed_at - started_at AS ran, error_details
  FROM audit.executions
 WHERE job_id = '{}'
 ORDER BY scheduled_time DESC
 LIMIT 50;"""
_CHANGES = """\
SELECT at, actor, action, before, after, reason
  FROM audit.changes
 WHERE target_type = 'job' AND target_id = '{}'
 ORDER BY audit_id DESC;"""
_OCCURRENCES = """\
SELECT first_time, last_time, occurrences, disposition, cause
  FROM audit.occurrences
 WHERE job_id = '{}'
 ORDER BY first_time DESC
 LIMIT 50;"""


class Line(NamedTuple):
    """Something to copy, and what it does."""

    title: str
    text: str


def ways_to(job_id: UUID, server: str) -> list[tuple[str, list[Line]]]:
    """Return what can be copied, by its kind."""
    return [
        ("API", _requests(f"{server}/api/v1/jobs/{job_id}")),
        ("Command line", _commands(job_id)),
        ("SQL", _queries(job_id)),
    ]


def _requests(url: str) -> list[Line]:
    return [
        Line("The job", f"curl {_KEY} \\\n  {url}"),
        Line("Run it now", f"curl -X POST {_KEY} \\\n  {url}/actions/run"),
        Line(
            "Pause it",
            f'curl -X POST {_KEY} {_JSON} \\\n  -d \'{{"reason": "why"}}\' \\\n  {url}/actions/pause',
        ),
        Line("Resume it", f"curl -X POST {_KEY} \\\n  {url}/actions/resume"),
        Line(
            "Its failures, the newest first", f"curl {_KEY} \\\n  '{url}/executions?status=FAILED&limit=50'"
        ),
    ]


def _commands(job_id: UUID) -> list[Line]:
    return [
        Line("The job", f"onthedot job get {job_id}"),
        Line("Run it now and wait for the end", f"onthedot job run {job_id} --wait"),
        Line("Pause it", f"onthedot job pause {job_id} --reason why"),
        Line("Resume it", f"onthedot job resume {job_id}"),
        Line("Its runs, the newest first", f"onthedot job history {job_id}"),
        Line("When it runs next", f"onthedot job next {job_id}"),
    ]


def _queries(job_id: UUID) -> list[Line]:
    return [
        Line("Its runs, the newest first", _RUNS.format(job_id)),
        Line("Who changed it", _CHANGES.format(job_id)),
        Line("What became of each instant of its schedule", _OCCURRENCES.format(job_id)),
    ]
