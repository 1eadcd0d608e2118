"""Who is behind a change, for the audit triggers to read."""

from app.db.pools import Connection


async def act_as(connection: Connection, actor: str) -> None:
    """Name the actor of this transaction, such as `user:ada`. Without it a change counts as the SQL session's."""
    await connection.execute("SELECT set_config('onthedot.actor', $1, true)", actor)
