"""Where migrations and templates lie: inside the package in a wheel, beside it in a checkout."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def _asset_dir(name: str) -> Path:
    """Return the wheel's copy if this package has one, else the checkout's folder.

    Asked of the file system and not of `importlib.resources`: an editable install leaves a stale
    `app/_migrations` in site-packages, while this package is the checkout's.
    """
    bundled = _PACKAGE / f"_{name}"
    return bundled if bundled.is_dir() else _PACKAGE.parent / name


MIGRATIONS_DIR = _asset_dir("migrations")
TEMPLATES_DIR = _asset_dir("templates")
