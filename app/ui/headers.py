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
    # A page of another site that opens ours gets no handle on it, and none may load our answers as its own.
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    # After a log-out the browser's back button must not show the page again.
    "Cache-Control": "no-store",
    # The same address answers with a page, or with a part of it to scripts.
    "Vary": "HX-Request",
}
