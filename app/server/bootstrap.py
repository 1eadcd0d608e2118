"""The first start: an administrator with a key, and a link to log in by."""

import msgspec

from app.db.clock import DatabaseClock
from app.db.engine import open_engine
from app.db.pools import connect
from app.db.stores.access import ADMIN_USER_ID, AccessStore
from app.domain.access import new_secret
from app.domain.ids import uuid7
from app.files import write_file
from app.settings import Settings


class Bootstrap(msgspec.Struct, frozen=True):
    """What a start may show to the person who started it."""

    admin_key_generated: str | None
    """The admin key, at the start that made it; afterwards it is in `DATA_DIR/admin.key` only."""
    login_token: str | None
    """Logs the administrator in once; None where somebody else set the administrator up."""


async def bootstrap(dsn: str, settings: Settings) -> Bootstrap:
    """See that there is an administrator with a key, and make a link to log in by."""
    clock = DatabaseClock()
    connection = await connect(dsn, application_name="onthedot bootstrap")
    try:
        await clock.synchronise(connection)
    finally:
        await connection.close()
    engine = open_engine(dsn, size=1, application_name="onthedot bootstrap")
    try:
        access = AccessStore(engine)
        file = settings.data_dir / "admin.key"
        known = settings.admin_api_key or (file.read_text("ascii").strip() if file.is_file() else None)
        generated = None
        if known is None and not await access.has_admin_key():
            generated = new_secret()
            file.parent.mkdir(parents=True, exist_ok=True)
            write_file(file, generated + "\n", mode=0o600)
        if key := known or generated:
            await access.ensure_admin(key, key_id=uuid7(clock.unix_microseconds()))
            token = new_secret()
            await access.add_login_token(token, user_id=ADMIN_USER_ID)
            return Bootstrap(generated, token)
        return Bootstrap(None, None)
    finally:
        await engine.dispose()
