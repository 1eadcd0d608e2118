"""Labels: what a task requires of a worker, and workers offer."""

import re
from typing import Annotated

import msgspec

_NAME, _VALUE = r"[a-z0-9][a-z0-9_./-]{0,62}", r"[A-Za-z0-9][A-Za-z0-9_./:-]{0,62}"
LabelName = Annotated[str, msgspec.Meta(pattern=rf"^{_NAME}$(?!\n)")]
LabelValue = Annotated[str, msgspec.Meta(pattern=rf"^{_VALUE}$(?!\n)")]
Labels = Annotated[dict[LabelName, LabelValue], msgspec.Meta(max_length=20)]


def is_label(name: str, value: str) -> bool:
    """Tell whether this is a label."""
    return bool(re.fullmatch(_NAME, name) and re.fullmatch(_VALUE, value))
