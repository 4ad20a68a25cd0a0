"""How a number was obtained: a chain of steps that `explain` prints."""

from dataclasses import dataclass, field

BEYOND_CONTEXT = "longest request, beyond the model's context"
"""What an assumption is called that a reader must look at twice: the model was not published for such requests."""


@dataclass(frozen=True, slots=True)
class Step:
    """One link of a derivation: `symbol = value unit`, by `formula` from `inputs`, as `source` says."""

    symbol: str
    value: float
    unit: str
    formula: str
    inputs: tuple[tuple[str, float], ...] = ()
    source: str = ""


@dataclass(frozen=True, slots=True)
class Assumption:
    """A figure that the answer rests on and that somebody may want to change.

    `kind` is measured | catalog | user | estimate | default; `low` and `high` bound an estimate.
    """

    name: str
    value: float | str
    unit: str
    source: str
    kind: str
    date: str = ""
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Trace:
    """Steps in the order in which they were taken; the last one is the result."""

    steps: tuple[Step, ...] = field(default=())

    def then(self, step: Step) -> "Trace":
        """Return the trace lengthened by `step`."""
        return Trace((*self.steps, step))


@dataclass(frozen=True, slots=True)
class TraceNode:
    """A figure (or a fact) and what it comes from, as a tree: `value` `unit` by `formula` from `inputs` and `children`.

    `source` names where a figure was read; `value` is a text where there is no figure, None where the label says it.
    """

    label: str
    value: float | str | None = None
    unit: str = ""
    formula: str = ""
    source: str = ""
    inputs: tuple[tuple[str, float], ...] = ()
    children: tuple["TraceNode", ...] = ()
