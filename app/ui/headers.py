"""Headers that every page is sent with."""

from collections.abc import Mapping

PAGE_HEADERS: Mapping[str, str] = {
    # Everything a page uses is a file of ours: no inline script or style, no frame around it, no foreign form target.
    "Content-Security-Policy": (
        "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'; object-src 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    # Not `no-referrer`: browsers would then send `Origin: null` with our own forms (see `same_origin`).
    "Referrer-Policy": "same-origin",
    # After a log-out the browser's back button must not show the page again.
    "Cache-Control": "no-store",
}
