"""A TCP proxy in front of PostgreSQL that does what networks do: silence, delay, resets, and replies that get lost.

It knows as much of the protocol as it takes to find a statement by the beginning of its text: `-- settle:` is the
header of `settle.sql`.
"""

import asyncio
import socket
import struct
import threading
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import urlsplit, urlunsplit

CHUNK = 65_536
SSL_REQUEST = 80_877_103
PARSE, BIND, QUERY, READY, IDLE = b"P", b"B", b"Q", b"Z", b"I"


@dataclass
class Loss:
    """A wish to lose what comes next of a statement: its reply, once it is committed, or the request itself."""

    statement: str
    what: str
    """`reply` or `request`."""
    done: threading.Event = field(default_factory=threading.Event)


class Proxy:
    """Listens on loopback, on a thread of its own. What is wanted of it is set from any thread, and holds at once.

    `silent`: of which directions (`up`: to the server, `down`: from it) nothing comes through; connections stay open.
    """

    def __init__(self, dsn: str) -> None:
        self._target = urlsplit(dsn)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._links: set[Link] = set()
        self.silent: frozenset[str] = frozenset()
        self.delay_seconds = 0.0
        self.loss: Loss | None = None
        self.statements: Counter[str] = Counter()
        """How often each came by: by the name in its header, or its text."""
        self._thread.start()
        self._server = self._call(asyncio.start_server(self._serve, "127.0.0.1", 0))

    @property
    def dsn(self) -> str:
        """Return the address of the database by way of the proxy."""
        port = self._server.sockets[0].getsockname()[1]
        account = self._target.netloc.rpartition("@")[0]
        return urlunsplit(self._target._replace(netloc=f"{account}@127.0.0.1:{port}"))

    def lead_to(self, dsn: str) -> None:
        """Lead new connections to another server, as an address that moves does."""
        self._target = urlsplit(dsn)

    def lose(self, statement: str, what: str) -> Loss:
        """Lose the reply to the next such statement, or the statement; its connection is reset."""
        self.loss = Loss(statement, what)
        return self.loss

    def reset(self) -> None:
        """Reset every connection."""
        self._call(self._reset_all())

    def close(self) -> None:
        """End everything."""
        self._call(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _call(self, coroutine):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - passes on what it is given
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(timeout=30)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            up = await asyncio.open_connection(self._target.hostname, self._target.port)
        except OSError:
            writer.transport.abort()
            return
        link = Link(self, (reader, writer), up)
        self._links.add(link)
        try:
            await link.run()
        finally:
            self._links.discard(link)

    async def _reset_all(self) -> None:
        for link in self._links:
            link.reset()

    async def _close(self) -> None:
        self._server.close()
        await self._reset_all()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()


Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Link:
    """One connection through the proxy."""

    def __init__(self, proxy: Proxy, client: Stream, server: Stream) -> None:
        self._proxy = proxy
        self._client, self._server = client, server
        self._texts: dict[bytes, bytes] = {}
        self._losing: Loss | None = None
        self._holds_back = False

    async def run(self) -> None:
        """Pass everything on until one side is gone."""
        ways: list[asyncio.Task[None]] = []
        try:
            await self._begin(self._client[0])
            ways = [asyncio.create_task(self._up()), asyncio.create_task(self._down())]
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        except (OSError, asyncio.IncompleteReadError):
            pass  # gone before it had begun
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            self.reset()

    def reset(self) -> None:
        """End both sides at once; the client's is reset."""
        for _, writer in (self._client, self._server):
            raw = writer.get_extra_info("socket")
            with suppress(OSError):
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()

    async def _up(self) -> None:
        reader, _ = self._client
        while True:
            kind, body = await _message(reader)
            self._note(kind, body)
            if self._losing and self._losing.what == "request":
                self._finish_losing()
                return
            await self._send("up", kind + _length(body) + body)

    async def _begin(self, reader: asyncio.StreamReader) -> None:
        """Pass on the start of a session, whose messages have no kind; a wish for TLS comes before it."""
        while True:
            (length,) = struct.unpack("!I", await reader.readexactly(4))
            body = await reader.readexactly(length - 4)
            await self._send("up", _length(body) + body)
            if struct.unpack("!I", body[:4])[0] != SSL_REQUEST:
                return
            await self._send("down", await self._server[0].readexactly(1))  # which has no frame either

    async def _down(self) -> None:
        reader, _ = self._server
        kept = b""
        while True:
            kind, body = await _message(reader)
            kept += kind + _length(body) + body
            if not self._holds_back:
                await self._send("down", kept)
                kept = b""
            elif kind == READY and body == IDLE:  # it is committed, and nobody will know of it
                self._finish_losing()
                return
            elif kind == READY:  # within a transaction: what counts is the reply to its commit
                self._holds_back = False
                await self._send("down", kept)
                kept = b""

    def _note(self, kind: bytes, body: bytes) -> None:
        """Remember what statements are called, and see whether this is the one whose reply is to be lost."""
        text = b""
        if kind == PARSE:
            name, text, *_ = body.split(b"\0", 2)
            self._texts[name] = text
            return
        if kind == BIND:
            text = self._texts.get(body.split(b"\0", 2)[1], b"")
        elif kind == QUERY:
            text = body
        if text:
            self._proxy.statements[text.decode(errors="replace").lstrip().split(":")[0]] += 1
        loss = self._proxy.loss
        if loss and self._losing is None and text.lstrip().startswith(loss.statement.encode()):
            self._losing, self._proxy.loss = loss, None
            self._holds_back = True
        elif self._losing and text.startswith(b"COMMIT"):
            self._holds_back = True

    def _finish_losing(self) -> None:
        if self._losing:
            self._losing.done.set()
            self._losing = None

    async def _send(self, way: str, data: bytes) -> None:
        if self._proxy.delay_seconds:
            await asyncio.sleep(self._proxy.delay_seconds)
        # What is dropped is sent again by the system: it comes late, or never.
        while way in self._proxy.silent:  # noqa: ASYNC110 - set from other threads
            await asyncio.sleep(0.02)
        writer = (self._server if way == "up" else self._client)[1]
        writer.write(data)
        await writer.drain()


async def _message(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    kind = await reader.readexactly(1)
    (length,) = struct.unpack("!I", await reader.readexactly(4))
    return kind, await reader.readexactly(length - 4)


def _length(body: bytes) -> bytes:
    return struct.pack("!I", len(body) + 4)
