"""Commands as tasks have them."""

import pytest

from app.domain.command import parse_command
from app.domain.errors import InvalidInput
from app.domain.tasks import check_handler


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("true", ("true",)),
        ("  tar -czf  /b.tgz /etc ", ("tar", "-czf", "/b.tgz", "/etc")),
        ("echo 'a b' \"c d\" e\\ f", ("echo", "a b", "c d", "e f")),
        ("sh -c 'ls | wc -l > out; echo $HOME'", ("sh", "-c", "ls | wc -l > out; echo $HOME")),
        ("grep '|' \"<\" \\;", ("grep", "|", "<", ";")),
        ("curl https://example.com/?a=1&b=2", ("curl", "https://example.com/?a=1&b=2")),
        ("echo $HOME * ~ # no comment", ("echo", "$HOME", "*", "~", "#", "no", "comment")),
        ("echo it\\'s", ("echo", "it's")),
        ("echo ''", ("echo", "")),
    ],
)
def test_a_command_is_cut_into_its_words_and_nothing_else(text: str, words: tuple[str, ...]) -> None:
    assert parse_command(text) == words


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "write shell:COMMAND"),
        ("  ", "write shell:COMMAND"),
        ("'' x", "write shell:COMMAND"),
        ("echo 'a", "no closing quotation"),
        ("echo a\\", "no escaped character"),
        ("a\0b", "NUL"),
        ("ls | wc", "'|' means something to a shell only"),
        ("make && make install", "'&&' means something"),
        ("echo x >> file", "'>>' means something"),
        ("echo x >file", "'>file' means something"),
        ("run 2>&1", "'2>&1' means something"),
        ("run &", "sh -c"),
        ("a ; b", "';' means something"),
    ],
)
def test_what_is_no_command_is_refused_with_the_remedy(text: str, why: str) -> None:
    with pytest.raises(InvalidInput, match=why.replace("|", r"\|")) as refused:
        parse_command(text)

    assert refused.value.code == "invalid_handler"
    assert [error.pointer for error in refused.value.errors] == ["/execution_handler"]


def test_tasks_may_run_commands_only_where_that_is_allowed() -> None:
    check_handler("shell:true", allow_private_targets=False, allow_shell=True)

    with pytest.raises(InvalidInput, match="ONTHEDOT_ALLOW_SHELL=true"):
        check_handler("shell:true", allow_private_targets=False, allow_shell=False)
