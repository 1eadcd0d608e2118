"""Text that PostgreSQL can hold: NUL and lone surrogates made visible, length bounded."""

import re

_SURROGATE = re.compile(r"[\ud800-\udfff]")


def storable_text(text: str) -> str:
    """Return `text` with NUL as U+2400 and every lone surrogate as U+FFFD: PostgreSQL refuses both."""
    if "\0" in text:
        text = text.replace("\0", "\u2400")
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def clean_text(text: str, limit_chars: int) -> str:
    """Return `text` storable and at most `limit_chars` long, for messages and tracebacks.

    The cut is made in the middle and says so: a message tells most at its start, a traceback at its end.
    """
    if len(text) <= limit_chars:
        return storable_text(text)
    mark = f"\n… [{len(text) - limit_chars:,} characters cut] …\n"
    kept = max(0, limit_chars - len(mark))
    head = kept // 3
    return storable_text((text[:head] + mark + text[len(text) - (kept - head) :])[:limit_chars])


def utf8_length(text: str) -> int:
    """Return how many bytes of UTF-8 `text` is; a lone surrogate counts as its replacement U+FFFD does."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
