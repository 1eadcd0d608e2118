"""What `ctx.once` takes and keeps."""

from app.domain.recordable import RESULT_LIMIT_BYTES, recordable

MAX_KEY = 200


def check_key(key: object) -> None:
    """Refuse what cannot name an effect. Raises `ValueError`."""
    if not isinstance(key, str) or not 0 < len(key) <= MAX_KEY or "\0" in key:
        raise ValueError(f"ctx.once takes a key of 1 to {MAX_KEY} characters, not {key!r:.100}")


def effect_json(key: str, result: object) -> str:
    """Return as JSON text what an effect came to. Raises `ValueError` where that is too long to be kept."""
    recorded = recordable(result)
    if recorded.truncated:
        raise ValueError(f"the result of ctx.once({key!r}) has more than {RESULT_LIMIT_BYTES} bytes as JSON")
    return recorded.json_text
