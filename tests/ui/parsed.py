"""Pages as tests look at them."""

from html.parser import HTMLParser


class Html(HTMLParser):
    """A parsed page: its elements with their attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: list[str] = []
        self.typed: dict[str, str] = {}
        """What stands in text areas, and what is chosen in selects, by their names."""
        self.labels: dict[str, str] = {}
        """The first words of labels, by the ids of their fields."""
        self._inside: tuple[str, str] = ("", "")
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep an element."""
        found = {name: value or "" for name, value in attrs}
        self.elements.append((tag, found))
        if tag in {"textarea", "select"}:
            self._inside = (tag, found.get("name", ""))
        elif tag == "label":
            self._inside = (tag, found.get("for", ""))
        elif tag == "option" and ("selected" in found or self._inside[1] not in self.typed):
            self.typed[self._inside[1]] = found.get("value", "")

    def handle_endtag(self, tag: str) -> None:
        """Leave a text area, a select or a label."""
        if tag == self._inside[0]:
            self._inside = ("", "")

    def handle_data(self, data: str) -> None:
        """Keep a piece of text."""
        inside, name = self._inside
        if inside == "textarea":
            self.typed[name] = self.typed.get(name, "") + data
        if not data.strip():
            return
        self.texts.append(data.strip())
        if inside == "label":
            self.labels.setdefault(name, data.strip())

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
