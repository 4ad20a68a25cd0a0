"""What predicting a row of measurements gives: predictions, or the reason why there are none."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from catalog.load import Catalog


@dataclass(frozen=True, slots=True)
class Prediction:
    """One target of one row. `low` and `high` bound the measurement at 90 % confidence, in the target's unit.

    `gpu` and `model` are catalog ids, `source` is the publication that the row comes from (`publication`). Rows that
    are not comparable by their own mark are predicted too, with `scored` False.
    """

    id: str
    target: str
    kind: str
    gpu: str
    model: str
    source: str
    predicted: float
    measured: float
    low: float
    high: float
    scored: bool

    @property
    def error(self) -> float:
        """Predicted ÷ measured − 1."""
        return self.predicted / self.measured - 1

    @property
    def in_range(self) -> bool:
        """Whether the measurement lies within the stated range."""
        return self.low <= self.measured <= self.high


@dataclass(frozen=True, slots=True)
class NotPredicted:
    """A row without a prediction: what the catalog lacks, or what the row does not say."""

    id: str
    reason: str


class UnreadableCellError(ValueError):
    """A cell that does not hold what its column is for; the message says what was found and what to write."""


class NotPredictableError(ValueError):
    """A row that is sound, but that the estimator has no answer for; the message is the reason."""


Predictor = Callable[[Mapping[str, str], Catalog], list[Prediction] | NotPredicted]
