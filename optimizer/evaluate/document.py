"""The outcome of an evaluation as plain data: the JSON that scripts read."""

from collections.abc import Sequence
from typing import Any

from optimizer.evaluate.run import Evaluation
from optimizer.evaluate.scoring import GROUPINGS, Score, score, score_by
from optimizer.evaluate.types import Prediction

_SLIP = 100
"""Factor beyond which an estimate is no longer merely wrong: the worst open row is off by a factor of 8."""
_NAMED_SLIPS = 5
ROW_KEYS = (
    "id", "target", "kind", "gpu", "model", "source", "predicted", "measured", "error", "low", "high", "scored",
)  # fmt: skip


def evaluation_document(evaluation: Evaluation) -> dict[str, Any]:
    """Rows, summaries of scored and of other rows, what was not predicted, share of measurements in range."""
    scored = evaluation.scored
    whole = score(scored)
    return {
        "kind": evaluation.kind,
        "rows": [row_record(p) for p in evaluation.predictions],
        "summary": _summary(scored),
        "summary_unscored": _summary(evaluation.unscored),
        "not_predicted": [{"id": row.id, "reason": row.reason} for row in evaluation.not_predicted],
        "range_coverage": None if whole is None else whole.range_coverage,
        "counts": {
            "rows": evaluation.rows,
            "not_predicted": len(evaluation.not_predicted),
            "unreadable": evaluation.unreadable,
            "predictions": len(evaluation.predictions),
            "scored": len(scored),
            "scored_without_mark": len(scored) if evaluation.missing_mark else 0,
        },
        "notes": _notes(evaluation),
    }


def _notes(evaluation: Evaluation) -> list[str]:
    notes = []
    if evaluation.missing_mark:
        notes.append(f"no column {evaluation.missing_mark}: all rows are scored, also any that are not comparable")
    slips = [p for p in evaluation.predictions if not 1 / _SLIP < p.predicted / p.measured < _SLIP]
    if slips:
        named = ", ".join(f"{p.id} ({p.target})" for p in slips[:_NAMED_SLIPS])
        more = f" and {len(slips) - _NAMED_SLIPS} more" if len(slips) > _NAMED_SLIPS else ""
        notes.append(f"over {_SLIP} times off, a unit may be wrong (s for ms, tokens for requests): {named}{more}")
    return notes


def row_record(prediction: Prediction) -> dict[str, Any]:
    """One prediction with its error."""
    return {key: getattr(prediction, key) for key in ROW_KEYS}


def _summary(predictions: Sequence[Prediction]) -> dict[str, Any]:
    by = {f"by_{name}": _records(score_by(predictions, name)) for name in GROUPINGS}
    return {"all": score_record(score(predictions)), **by}


def _records(scores: dict[str, Score]) -> dict[str, Any]:
    return {name: score_record(found) for name, found in scores.items()}


def score_record(found: Score | None) -> dict[str, Any] | None:
    """One score; `worst` names the row that is furthest off, and by how much."""
    if found is None:
        return None
    worst = found.worst
    return {
        "n": found.n,
        "median_abs_pct": found.median_abs_pct,
        "p90_abs_pct": found.p90_abs_pct,
        "bias_pct": found.bias_pct,
        "worst": {"id": worst.id, "target": worst.target, "error_pct": 100 * worst.error},
        "range_coverage": found.range_coverage,
    }
