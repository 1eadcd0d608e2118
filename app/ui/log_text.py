"""Captured output as text for people: without what steers a terminal, and nothing in it that hides."""

import re

LONGEST = 2_000
"""Characters of a line that a page shows; the raw log has all."""

_ESCAPE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours, cursor
    r"|(?:\x1b\]|\x9d)[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c|$)"  # titles, links
    r"|\x1b[ -/]*[0-~]"
)
_HIDDEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069\ufeff]")


def log_text(message: str, longest: int = LONGEST) -> str:
    """Return a line as it is shown: escape sequences gone, other invisible characters written out."""
    shown = message
    if not message.isprintable():
        shown = _HIDDEN.sub(_written_out, _ESCAPE.sub("", message))
    if len(shown) <= longest:
        return shown
    return f"{shown[:longest]} … {len(shown) - longest:,} more characters"


def _written_out(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return f"<U+{code:04X}>"
