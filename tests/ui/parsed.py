"""Pages as tests look at them."""

from html.parser import HTMLParser


class Html(HTMLParser):
    """A parsed page: its elements with their attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep an element."""
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        """Keep a piece of text."""
        if data.strip():
            self.texts.append(data.strip())

    @property
    def text(self) -> str:
        """Return all text, a line for each piece."""
        return "\n".join(self.texts)

    def all(self, tag: str, **attributes: str) -> list[dict[str, str]]:
        """Return the attributes of every such element."""
        return [found for name, found in self.elements if name == tag and attributes.items() <= found.items()]

    def link(self, rel: str) -> str | None:
        """Return the address of the pager's link, if there is one."""
        return next((a["href"] for a in self.all("a", rel=rel)), None)

    def references(self) -> list[str]:
        """Return every address that the page loads from, links to or sends to."""
        return [
            found[name] for _, found in self.elements for name in ("src", "href", "action") if name in found
        ]

    def inline_code(self) -> list[str]:
        """Return what a strict content security policy would block."""
        scripts = ["script" for tag, found in self.elements if tag == "script" and "src" not in found]
        styles = ["style" for tag, found in self.elements if tag == "style" or "style" in found]
        handlers = [name for _, found in self.elements for name in found if name.startswith("on")]
        return scripts + styles + handlers
