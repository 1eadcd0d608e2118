"""Other ways to workflows and their runs than their pages: requests and queries to copy."""

from uuid import UUID

from app.ui.job_ways import Line

_KEY = '-H "Authorization: Bearer $KEY"'
_JSON = "-H 'Content-Type: application/json'"
_RUNS = """\
SELECT started_at, status, completed_at - started_at AS ran, cause
  FROM audit.workflow_runs
 WHERE workflow_id = '{}'
 ORDER BY started_at DESC
 LIMIT 50;"""
_FAILED = """\
SELECT step, count(*) AS runs, max(completed_at) AS latest, max(cause) AS cause
  FROM audit.workflow_run_steps
 WHERE workflow_id = '{}' AND status = 'FAILED'
 GROUP BY step
 ORDER BY runs DESC;"""


def ways_to_workflow(workflow_id: UUID, server: str) -> list[tuple[str, list[Line]]]:
    """Return what can be copied for a workflow, by its kind."""
    url = f"{server}/api/v1/workflows/{workflow_id}"
    pause = f'curl -X POST {_KEY} {_JSON} \\\n  -d \'{{"reason": "why"}}\' \\\n  {url}/actions/pause'
    return [
        (
            "API",
            [
                Line("The workflow with its steps", f"curl {_KEY} \\\n  {url}"),
                Line("Begin a run", f"curl -X POST {_KEY} \\\n  {url}/actions/run"),
                Line("Pause it", pause),
                Line("Resume it", f"curl -X POST {_KEY} \\\n  {url}/actions/resume"),
                Line("Its runs, the newest first", f"curl {_KEY} \\\n  {url}/runs"),
            ],
        ),
        (
            "Command line",
            [
                Line("The workflow with its steps", f"onthedot wf show {workflow_id}"),
                Line("Begin a run", f"onthedot wf run {workflow_id}"),
                Line("Pause it", f"onthedot wf pause {workflow_id} --reason why"),
                Line("Resume it", f"onthedot wf resume {workflow_id}"),
                Line("Its runs, the newest first", f"onthedot wf runs {workflow_id}"),
            ],
        ),
        (
            "SQL",
            [
                Line("Its runs, the newest first", _RUNS.format(workflow_id)),
                Line("Which steps fail", _FAILED.format(workflow_id)),
            ],
        ),
    ]
