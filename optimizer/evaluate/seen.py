"""What the open serving measurements cover: GPUs, models and engines that the estimator has been held against."""

import csv
from functools import cache
from importlib.resources import files

from optimizer.estimator.engines import engine_named
from optimizer.evaluate.serving_case import ServingCase


@cache
def measured_names() -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """GPUs and models by the names of the table, engines by their family."""
    text = files("catalog").joinpath("measurements", "inference.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    return (
        frozenset(row["gpu"] for row in rows),
        frozenset(row["model"] for row in rows),
        frozenset(engine_named(row["engine"]).name for row in rows),
    )


def was_seen(gpu: str, model: str, case: ServingCase) -> bool:
    """Whether GPU, model and engine of a row are all among the open measurements."""
    gpus, models, engines = measured_names()
    return gpu in gpus and model in models and case.engine.name in engines
