"""The graph that the steps of a workflow form: read, checked, walked."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from app.domain.errors import InvalidInput
from app.domain.workflows.definition import MOST_INSTANCES, Step, When
from app.domain.workflows.references import ITEM_NAMES, RESERVED, Reference, as_reference, references_in

SHOWN_OF_A_CIRCLE = 20


class Graph:
    """Steps by their keys, and which come before and after which. Only of steps that have passed `check_steps`."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps: Mapping[str, Step] = {step.key: step for step in steps}
        self.downstream: dict[str, list[str]] = {step.key: [] for step in steps}
        for step in steps:
            for upstream in step.depends_on:
                self.downstream[upstream].append(step.key)

    def descendants(self, keys: Iterable[str]) -> set[str]:
        """Return everything that comes after these steps, however far."""
        found: set[str] = set()
        frontier = deque(keys)
        while frontier:
            for after in self.downstream[frontier.popleft()]:
                if after not in found:
                    found.add(after)
                    frontier.append(after)
        return found


def check_steps(steps: Sequence[Step]) -> None:
    """Refuse steps that form no graph without circles, or refer to what they cannot know. Raises `InvalidInput`."""
    known: dict[str, int] = {}
    for index, step in enumerate(steps):
        if step.key in known:
            detail = f"the key {step.key} is that of step {known[step.key]} already; give each its own"
            raise InvalidInput(detail, pointer=f"/steps/{index}/key", code="duplicate_step")
        if step.key in RESERVED:
            names = ", ".join(sorted(RESERVED))
            raise InvalidInput(
                f"{names} have a meaning in references; choose another key", pointer=f"/steps/{index}/key"
            )
        known[step.key] = index
    for index, step in enumerate(steps):
        _check_dependencies(index, step, known)
    _check_references(steps, _require_no_circle(steps, known))


def _check_dependencies(index: int, step: Step, known: Mapping[str, int]) -> None:
    for number, upstream in enumerate(step.depends_on):
        pointer = f"/steps/{index}/depends_on/{number}"
        if upstream not in known:
            raise InvalidInput(f"there is no step {upstream}", pointer=pointer, code="unknown_step")
        if upstream in step.depends_on[:number]:
            raise InvalidInput(f"{upstream} stands here twice", pointer=pointer)
    if step.when in {When.ANY_SUCCESS, When.ANY_FAILED} and not step.depends_on:
        detail = f"{step.when} is about the steps before it; name them in depends_on"
        raise InvalidInput(detail, pointer=f"/steps/{index}/when")


def _require_no_circle(steps: Sequence[Step], known: Mapping[str, int]) -> list[Step]:
    """Return the steps in an order in which each comes after those that it depends on. Raises `InvalidInput`."""
    missing = {step.key: len(step.depends_on) for step in steps}
    graph = Graph(steps)
    ordered = deque(key for key, count in missing.items() if not count)
    found: list[Step] = []
    while ordered:
        step = graph.steps[ordered.popleft()]
        found.append(step)
        for after in graph.downstream[step.key]:
            missing[after] -= 1
            if not missing[after]:
                ordered.append(after)
    if len(found) < len(steps):
        circle = _circle(graph, {key for key, count in missing.items() if count})
        detail = (
            f"the steps depend on each other in a circle: {_path(circle)}; take one of these dependencies out"
        )
        raise InvalidInput(detail, pointer=f"/steps/{known[circle[0]]}/depends_on", code="circular_steps")
    return found


def _circle(graph: Graph, stuck: set[str]) -> list[str]:
    """Return a circle among steps each of which depends on another one of them, in the order of their running."""
    path: dict[str, None] = {}
    key = min(stuck)
    while key not in path:
        path[key] = None
        key = next(upstream for upstream in graph.steps[key].depends_on if upstream in stuck)
    walked = list(path)
    circle = walked[walked.index(key) :][::-1]
    start = circle.index(min(circle))
    return circle[start:] + circle[:start]


def _path(circle: Sequence[str]) -> str:
    shown = [*circle, circle[0]]
    if len(shown) > SHOWN_OF_A_CIRCLE:
        left_out = f"… {len(shown) - SHOWN_OF_A_CIRCLE} more …"
        shown = [*shown[: SHOWN_OF_A_CIRCLE // 2], left_out, *shown[-SHOWN_OF_A_CIRCLE // 2 :]]
    return " → ".join(shown)


def _check_references(steps: Sequence[Step], ordered: Sequence[Step]) -> None:
    """Let a step refer to what surely has ended when it begins: the steps before it. Raises `InvalidInput`."""
    index_of = {step.key: index for index, step in enumerate(steps)}
    before: dict[str, int] = {}
    """Of each step, those before it as bits: sets would be millions of entries."""
    for step in ordered:
        bits = 0
        for upstream in step.depends_on:
            bits |= before[upstream] | 1 << index_of[upstream]
        before[step.key] = bits
    for index, step in enumerate(steps):
        known = partial(_is_known, index_of, before[step.key])
        _check_step_references(step, known, pointer=f"/steps/{index}")


def _is_known(index_of: Mapping[str, int], before: int, root: str) -> bool:
    return root == "parameters" or (root in index_of and bool(before >> index_of[root] & 1))


def _check_step_references(step: Step, is_known: Callable[[str], bool], *, pointer: str) -> None:
    own = ITEM_NAMES if step.map is not None else frozenset[str]()
    for place, reference in references_in(step.parameters, f"{pointer}/parameters"):
        if reference.root not in own:
            _check_reference(reference, is_known, place)
    if isinstance(step.map, list) and len(step.map) > MOST_INSTANCES:
        detail = f"{len(step.map):,} items; a step maps over {MOST_INSTANCES:,} at most"
        raise InvalidInput(detail, pointer=f"{pointer}/map")
    if isinstance(step.map, dict) and as_reference(step.map) is None:
        detail = 'use a list, or a reference to one such as {"$from": "extract.rows"}'
        raise InvalidInput(detail, pointer=f"{pointer}/map")
    for place, reference in references_in(step.map, f"{pointer}/map"):
        _check_reference(reference, is_known, place)


def _check_reference(reference: Reference, is_known: Callable[[str], bool], pointer: str) -> None:
    if is_known(reference.root):
        return
    if reference.root in ITEM_NAMES:
        detail = f"{reference} is of steps with a map; this one has none"
    else:
        detail = f"{reference}: this step does not come after a step {reference.root}; add it to depends_on"
    raise InvalidInput(detail, pointer=pointer, code="unknown_reference")
