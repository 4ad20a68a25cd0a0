"""Published measurements that no estimate may miss by a factor of two (files name their sources)."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import pytest

from catalog.load import load_catalog
from optimizer.estimator.inference import RequestShape, batch_limit, memory_of, operating_point, saturated_seconds
from optimizer.estimator.kernels import kernel_for
from optimizer.estimator.roofline import replica_of
from optimizer.estimator.training import gpu_seconds_per_token, largest_micro_batch
from optimizer.estimator.training_memory import TrainingPlan

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Engine:
    """Engine setting of a measured run."""

    max_batch: int | None


def rows(name: str) -> Iterator[dict[str, str]]:
    with (HERE / name).open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def serving_error(row: dict[str, str]) -> float:
    """Predicted ÷ measured output tokens/s − 1 of a row."""
    catalog = load_catalog()
    gpu, model = catalog.gpu(row["gpu"]), catalog.model(row["model"])
    kernel = kernel_for(gpu, row["weights"])
    assert kernel is not None
    replica = replica_of(gpu, model, row["weights"], row["kv"], kernel, int(row["tensor_parallel"]))
    shape = RequestShape("all", float(row["input_tokens"]), float(row["output_tokens"]))
    engine = Engine(2048 if row["engine"].startswith("TensorRT") else None)
    batch = batch_limit(gpu, engine, memory_of(gpu, replica), replica, shape)
    if row["concurrency"] not in ("", "inf"):
        batch = min(batch, int(float(row["concurrency"])))
    loaded = row["kind"] == "serve"
    seconds = operating_point(replica, shape, batch).seconds if loaded else saturated_seconds(replica, shape, batch)
    return shape.output / seconds.total / float(row["output_tokens_per_s"]) - 1


def training_error(row: dict[str, str]) -> float:
    """Predicted ÷ measured tokens/s per GPU − 1 of a whole pre-training run."""
    catalog = load_catalog()
    plan = TrainingPlan(
        model=catalog.model(row["model"]), sequence=int(row["sequence"]), micro_batch=1, precision="bf16",
        method="full", sharding="zero3", recompute=row["recompute"], optimizer="adamw", stack="typical",
    )  # fmt: skip
    gpu, gpus, size = catalog.gpu(row["gpu"]), int(row["gpus"]), int(row["tensor_parallel"])
    plan = largest_micro_batch(gpu, plan, size, gpus // size, None)
    seconds = gpu_seconds_per_token(gpu, plan, size, gpus)
    return 1 / seconds / float(row["tokens_per_s_per_gpu"]) - 1


@pytest.mark.parametrize(
    ("name", "error", "typical"),
    [("published_serving.csv", serving_error, 0.2), ("published_training.csv", training_error, 0.3)],
)
def test_published_rates_are_met(name: str, error: object, typical: float) -> None:
    """Half of the rows within the typical error, every one within a factor of two."""
    assert callable(error)
    errors = {row["id"]: error(row) for row in rows(name)}
    assert len(errors) >= 8
    assert median(abs(e) for e in errors.values()) < typical, errors
    assert all(-0.5 < e < 1.0 for e in errors.values()), errors
