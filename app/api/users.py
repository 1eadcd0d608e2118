"""`/users`: the owners of jobs."""

from datetime import datetime
from typing import Annotated, Any

import msgspec
from litestar import Controller, Request, Response, delete, get, patch, post
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery, JSONBody, QueryParameter

from app.api.answers import CHANGES, CREATES, DELETES, LISTS, READS
from app.api.body import StrictBody
from app.api.instants import read_instant
from app.api.paging import (
    DEFAULT_LIMIT,
    MAX_LIMIT,
    CursorText,
    FilterText,
    Include,
    Limit,
    read_text_cursor,
    window,
    write_text_cursor,
)
from app.api.preconditions import IfMatch, etag, required_version
from app.db.reads.executions import ExecutionFilters, ExecutionReads, ExecutionView
from app.db.reads.paging import Page
from app.db.reads.users import Summary, SummaryReads
from app.db.stores.limits import AT_ONCE_SECONDS, LimitStore
from app.db.stores.users import User, UserStore
from app.db.transactions import Transaction
from app.domain.access import Principal, Role
from app.domain.statuses import Status
from app.domain.users import HIDDEN, Channel, JobQuotas, UserPatch, UserRequest

ApiRequest = Request[Principal, Any, Any]
PriorityFilter = Annotated[int | None, QueryParameter(ge=0, le=3, description="Only those of this priority")]
Since = Annotated[
    str | None, QueryParameter(description="RFC 3339 or Unix seconds; without it: all that is kept")
]


class PreferencesView(msgspec.Struct, frozen=True, kw_only=True):
    """What a user wants to hear of. The secret reads `********`; so do the URLs to other people but admins."""

    on_success: bool
    on_failure: bool
    on_retry: bool
    channels: tuple[Channel, ...]
    slack_url: str | None
    webhook_url: str | None
    webhook_secret: str | None


class UserView(msgspec.Struct, frozen=True, kw_only=True):
    """A user as it is read."""

    user_id: str
    name: str
    email: str | None
    role: Role
    notification_preferences: PreferencesView
    job_quotas: JobQuotas
    created_at: datetime
    updated_at: datetime
    version: int


class UsersController(Controller):
    """Users. Everybody reads them, admins change them."""

    path = "/users"
    tags = ("Users",)

    @get(operation_id="listUsers", responses=LISTS)
    async def list_users(
        self,
        request: ApiRequest,
        users: NamedDependency[UserStore],
        limit: Limit = DEFAULT_LIMIT,
        cursor: CursorText = None,
    ) -> Page[UserView]:
        """List users in the order of their ids."""
        limit = min(limit, MAX_LIMIT)
        found = await users.list_page(limit=limit + 1, after=read_text_cursor(cursor))
        following = write_text_cursor(found[limit - 1].user_id) if len(found) > limit else None
        return Page([_view(user, reader=request.user) for user in found[:limit]], following)

    @post(operation_id="createUser", dto=StrictBody[UserRequest], return_dto=None, responses=CREATES)
    async def create_user(
        self,
        request: ApiRequest,
        data: JSONBody[UserRequest],
        users: NamedDependency[UserStore],
        transaction: NamedDependency[Transaction],
    ) -> Response[UserView]:
        """Create a user. It can do nothing before it has an API key."""
        request.user.require(Role.ADMIN)
        user = await users.create(data, by=request.user, within=transaction)
        return _answer(user, reader=request.user, headers={"Location": f"/api/v1/users/{user.user_id}"})

    @get("/{user_id:str}", operation_id="getUser", responses=READS)
    async def get_user(
        self, request: ApiRequest, user_id: FromPath[str], users: NamedDependency[UserStore]
    ) -> Response[UserView]:
        """Get a user."""
        return _answer(await users.get(user_id), reader=request.user)

    @patch(
        "/{user_id:str}",
        operation_id="changeUser",
        dto=StrictBody[UserPatch],
        return_dto=None,
        responses=CHANGES | DELETES,
    )
    async def change_user(
        self,
        request: ApiRequest,
        user_id: FromPath[str],
        data: JSONBody[UserPatch],
        users: NamedDependency[UserStore],
        limits: NamedDependency[LimitStore],
        if_match: IfMatch = None,
    ) -> Response[UserView]:
        """Change parts of a user; what is left out stays. The last admin stays one."""
        request.user.require(Role.ADMIN)
        version = required_version(if_match)
        user = await users.change(user_id, data, by=request.user, if_version=version)
        await limits.apply_new(within_seconds=AT_ONCE_SECONDS)
        return _answer(user, reader=request.user)

    @delete("/{user_id:str}", operation_id="deleteUser", responses=DELETES)
    async def delete_user(
        self, request: ApiRequest, user_id: FromPath[str], users: NamedDependency[UserStore]
    ) -> None:
        """Delete a user who owns no jobs, with their keys. The last admin stays."""
        request.user.require(Role.ADMIN)
        await users.delete(user_id, by=request.user)

    @get("/{user_id:str}/executions", operation_id="listUserExecutions", responses=READS)
    async def list_user_executions(
        self,
        *,
        user_id: FromPath[str],
        users: NamedDependency[UserStore],
        execution_reads: NamedDependency[ExecutionReads],
        limit: Limit = DEFAULT_LIMIT,
        cursor: CursorText = None,
        include: Include = None,
        status: FromQuery[Status | None] = None,
        queue: FilterText = None,
        priority: PriorityFilter = None,
        task_id: FilterText = None,
    ) -> Page[ExecutionView]:
        """List all executions of a user's jobs, the newest instant first.

        Without `status` those that have started, have ended or whose instant has come; `include=future` shows all.
        """
        filters = ExecutionFilters(
            user_id=user_id,
            status=status,
            queue=queue,
            priority=priority,
            task_id=task_id,
            include_future=include is not None,
        )
        bound = window(limit, cursor, msgspec.structs.asdict(filters))
        page = await execution_reads.list_page(filters, bound)
        if not page.items:
            await users.get(user_id)  # tells "none yet" from "no such user"
        return page

    @get("/{user_id:str}/summary", operation_id="getUserSummary", responses=READS)
    async def get_summary(
        self,
        user_id: FromPath[str],
        users: NamedDependency[UserStore],
        summary_reads: NamedDependency[SummaryReads],
        since: Since = None,
    ) -> Summary:
        """Count a user's executions by status, task and queue; at most 2 s old."""
        summary = await summary_reads.get(user_id, since=read_instant(since, name="since"))
        if not summary.by_status:
            await users.get(user_id)
        return summary


def _view(user: User, *, reader: Principal) -> UserView:
    preferences = msgspec.structs.asdict(user.notification_preferences)
    hidden = ["webhook_secret"]
    if reader.role is not Role.ADMIN and reader.user_id != user.user_id:
        hidden += ["slack_url", "webhook_url"]  # whoever knows such an address can write to it
    for name in hidden:
        preferences[name] = HIDDEN if preferences[name] else None
    values = msgspec.structs.asdict(user)
    return UserView(**values | {"notification_preferences": PreferencesView(**preferences)})


def _answer(user: User, *, reader: Principal, headers: dict[str, str] | None = None) -> Response[UserView]:
    return Response(_view(user, reader=reader), headers={"ETag": etag(user.version)} | (headers or {}))
