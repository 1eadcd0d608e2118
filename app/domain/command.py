"""Commands as an `execution_handler` has them: `shell:ARGV`."""

import re
import shlex

from app.domain.errors import InvalidInput

_OF_A_SHELL = re.compile(r"[|&;]+|\d?(?:<|>).*")
"""What stands for itself, unquoted, and would mean something in a shell."""


def parse_command(text: str) -> tuple[str, ...]:
    """Cut a command line into its words, as a shell would; nothing else of a shell is done. Raises `InvalidInput`."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise _invalid(f"the command cannot be read: {str(error).lower()}") from None
    if not words or not words[0]:
        raise _invalid(
            "write shell:COMMAND with the words of a command, such as shell:tar -czf /backup/etc.tgz /etc"
        )
    if "\0" in text:
        raise _invalid("a command cannot contain NUL")
    for word in _as_they_stand(text):
        if _OF_A_SHELL.fullmatch(word):
            raise _invalid(
                f"{word!r:.50} means something to a shell only, and there is none: quote it if it is an argument, or "
                "write shell:sh -c '…'"
            )
    return tuple(words)


def _as_they_stand(text: str) -> list[str]:
    """Return the words with their quotes on; none where quotes are nested in a way that this cannot follow."""
    reader = shlex.shlex(text, posix=False)
    reader.whitespace_split, reader.commenters = True, ""
    try:
        return list(reader)
    except ValueError:
        return []


def _invalid(detail: str) -> InvalidInput:
    return InvalidInput(detail, pointer="/execution_handler", code="invalid_handler")
