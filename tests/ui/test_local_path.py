"""Where `next` may lead."""

from urllib.parse import urljoin, urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.ui.sessions import local_path


@given(st.text(alphabet=st.sampled_from("/\\:@?#.%\t\n\r abe\u2028"), max_size=12) | st.text())
@example("/\t/evil")
def test_no_text_becomes_the_address_of_another_host(text: str) -> None:
    path = local_path(text)
    # As browsers read it: https://url.spec.whatwg.org/#concept-basic-url-parser
    seen = "".join(c for c in path if c not in "\t\n\r").strip("\0 ").replace("\\", "/")

    assert urlsplit(urljoin("http://here/login", seen)).netloc == "here"


@pytest.mark.parametrize("path", ["/", "/jobs", "/?status=FAILED&jobs_cursor=abc", "/jobs/1#log", "/задачи"])
def test_a_local_path_is_kept(path: str) -> None:
    assert local_path(path) == path
