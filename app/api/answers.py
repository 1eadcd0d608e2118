"""The problems that a handler may answer with, for the API's description. The framework documents its own only."""

import msgspec
from litestar.openapi import ResponseSpec

from app.api.problems import CODES, MEDIA_TYPE, TITLES, Problem


def answer(document: type[msgspec.Struct], description: str) -> ResponseSpec:
    """Describe an answer that the signature of a handler cannot tell, as it has several."""
    return ResponseSpec(document, description=description, generate_examples=False)


def problem_answers(*statuses: int) -> dict[int, ResponseSpec]:
    """Describe answers with problem documents under these statuses."""
    return {
        status: ResponseSpec(
            Problem, description=TITLES[CODES[status]][1], media_type=MEDIA_TYPE, generate_examples=False
        )
        for status in statuses
    }


LISTS = problem_answers(400, 401, 503)
READS = problem_answers(400, 401, 404, 503)
CREATES = problem_answers(400, 401, 403, 409, 413, 415, 422, 429, 503)
CHANGES = problem_answers(400, 401, 403, 404, 412, 413, 415, 429, 503)
ACTIONS = problem_answers(400, 401, 403, 404, 409, 413, 415, 422, 429, 503)
DELETES = problem_answers(400, 401, 403, 404, 409, 503)
