#!/usr/bin/env python3
"""Run one job over REST, or find its execution again. Needs nothing but the standard library.

    run_job.py HOST:PORT                create task and job, wait until the job ran, print its execution's id
    run_job.py HOST:PORT EXECUTION_ID   find that execution, COMPLETED, with its result

The key comes from ONTHEDOT_ADMIN_API_KEY. Exit code 1 and a message when something is not as it must be.
"""

import http.client
import json
import os
import sys
import time

Json = dict[str, object]

TASK: Json = {"task_id": "hello", "name": "hello", "execution_handler": "builtin:echo"}
PARAMETERS: Json = {"n": 1}
JOB: Json = {"task_id": "hello", "schedule": {"type": "IMMEDIATE"}, "parameters": PARAMETERS}
DEADLINE_SECONDS = 30.0


class CheckError(Exception):
    """The service did not do what it must."""


def main(address: str, execution_id: str | None = None) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    wait_until_ready(address, deadline)
    if execution_id is None:
        expect(201, request(address, "POST", "/api/v1/tasks", TASK))
        execution_id = str(expect(201, request(address, "POST", "/api/v1/jobs", JOB))["execution_id"])
    execution = wait_until_completed(address, execution_id, deadline)
    if execution["result"] != PARAMETERS:
        raise CheckError(f"the result must be {PARAMETERS}: {execution}")
    sys.stdout.write(f"{execution_id}\n")


def wait_until_ready(address: str, deadline: float) -> None:
    while True:
        try:
            expect(200, request(address, "GET", "/readyz"))
        except (CheckError, ConnectionError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return


def wait_until_completed(address: str, execution_id: str, deadline: float) -> Json:
    while True:
        execution = expect(200, request(address, "GET", f"/api/v1/executions/{execution_id}"))
        if execution["status"] == "COMPLETED":
            return execution
        if execution["status"] in {"FAILED", "CANCELLED", "SKIPPED"} or time.monotonic() > deadline:
            raise CheckError(f"not COMPLETED: {execution}")
        time.sleep(0.1)


def request(address: str, method: str, path: str, body: Json | None = None) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(address, timeout=DEADLINE_SECONDS)
    headers = {
        "Authorization": f"Bearer {os.environ['ONTHEDOT_ADMIN_API_KEY']}",
        "Content-Type": "application/json",
    }
    try:
        connection.request(method, path, json.dumps(body) if body else None, headers)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def expect(status: int, answer: tuple[int, bytes]) -> Json:
    if answer[0] != status:
        raise CheckError(f"expected {status}, got {answer[0]}: {answer[1].decode(errors='replace')}")
    document: Json = json.loads(answer[1])
    return document


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except (CheckError, OSError, http.client.HTTPException) as error:
        sys.exit(f"run_job.py: {error}")
