"""TPUs: in the catalog with their offers, planned only where they are measured."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from catalog import CatalogFileError, load_catalog
from catalog.tpu_slices import TpuSlice, tpu_slice
from optimizer.cli import app

CATALOG = load_catalog()
GPUS_CSV = Path(__file__).parents[2] / "catalog" / "gpus.csv"
SERVICE = {
    "name": "chat",
    "kind": "service",
    "model": "llama-3.1-8b",
    "traffic": {"mean_requests_per_s": 3},
    "tokens": {"input": 500, "output": 200},
}
TRAINING = {"name": "run", "kind": "training", "model": "llama-3.1-8b", "tokens": 1e9, "deadline": "20 days"}
BATCH = {
    "name": "bulk",
    "kind": "batch",
    "model": "llama-3.1-8b",
    "requests": {"count": 1000, "input": 90, "output": 9},
    "deadline": "20 days",
}
TPUS = ["TPU-v5e", "TPU-v5p", "TPU-v6e"]


def solved(folder: Path, workload: dict[str, Any], **parts: Any) -> dict[str, Any]:
    """The plan file of a problem with one workload."""
    path = folder / "problem.yaml"
    path.write_text(yaml.safe_dump({"name": "p", "horizon": {"months": 2}, "workloads": [workload], **parts}))
    done = CliRunner().invoke(app, ["solve", str(path), "-o", "json"], prog_name="gpumix")
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_the_generations_that_can_be_rented_are_there_with_their_offers() -> None:
    """Per chip: memory, bandwidth, peaks, torus link; power is not published; a v5p-8 has four chips at 4.20 each."""
    gpus = {gpu.gpu_id: gpu for gpu in CATALOG.gpus() if gpu.link_kind == "ici"}
    assert list(gpus) == TPUS
    assert [gpu.bf16_dense_tflop_per_s for gpu in gpus.values()] == [197, 459, 918]
    assert {gpu.tdp_w for gpu in gpus.values()} == {None}
    offers = {offer.offer_id: offer for offer in CATALOG.offers(TPUS)}
    v5p = offers["gcp/us-east5/v5p-8/on-demand"]
    assert (v5p.gpus_per_node, v5p.price_usd_per_node_hour) == (4, pytest.approx(16.8))
    assert {offer.gpu_id for offer in offers.values()} == set(TPUS)
    assert not CATALOG.servers(TPUS)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("v5litepod-8", TpuSlice("v5e", 8)),
        ("tpu-v5p-8", TpuSlice("v5p", 4)),
        ("TPU_v6e_1", TpuSlice("v6e", 1)),
        ("v3-8", TpuSlice("v3", 4)),
        ("v4-pod-32", TpuSlice("v4", 16)),
        ("v5p-1", None),
        ("V100-16", None),
        ("tpu-v5e", None),
    ],
)
def test_slices_are_counted_in_chips(name: str, meant: TpuSlice | None) -> None:
    """v2 to v4 and v5p are named after TensorCores, two per chip; v5e and v6e after chips."""
    assert tpu_slice(name) == meant


@pytest.mark.parametrize("workload", [SERVICE, TRAINING, BATCH], ids=["service", "training", "batch"])
def test_a_tpu_without_measurement_is_refused_and_said(tmp_path: Path, workload: dict[str, Any]) -> None:
    """The estimator has no model of TPUs: it asks for a measurement instead of guessing."""
    plan = solved(tmp_path, workload, options={"gpus": ["TPU-v5e"]})
    assert plan["status"] == "infeasible"
    assert [(r["gpu"], r["resource"]) for r in plan["rejections"]] == [("TPU-v5e", "measurement")]
    assert plan["rejections"][0]["reason"].startswith("no analytic model for TPU-v5e; give a measurement")


def test_a_tpu_enters_no_plan_of_a_problem_that_names_none(tmp_path: Path) -> None:
    """All GPUs are considered, TPUs are left out with the reason."""
    plan = solved(tmp_path, SERVICE)
    assert plan["status"] == "optimal"
    assert not [option for option in plan["inputs"]["options"] if option["gpu_id"] in TPUS]
    assert {r["gpu"] for r in plan["rejections"] if r["reason"].startswith("no analytic model")} == set(TPUS)


def test_a_measured_tpu_is_planned_in_whole_slices(tmp_path: Path) -> None:
    """3 requests/s at 2 per 4 chips need two replicas: one slice of 8 at 0.63 per chip-hour, 1460 hours."""
    measured = [{"workload": "chat", "gpu": "TPU-v5e", "gpus_per_replica": 4, "requests_per_s": 2}]
    plan = solved(tmp_path, SERVICE, options={"gpus": ["TPU-v5e"]}, measurements=measured)
    assert plan["status"] == "optimal"
    assert plan["cost"]["npv"] == pytest.approx(8 * 0.63 * 1460, rel=1e-6)


def test_power_may_be_left_open_of_a_tpu_only(tmp_path: Path) -> None:
    """An empty TDP of a GPU stays an error: owned nodes draw it."""
    lines = GPUS_CSV.read_text(encoding="utf-8").splitlines()
    shutil.copy(GPUS_CSV.with_name("aliases.csv"), tmp_path)
    place = lines[0].split(",").index("tdp_w")
    row = next(i for i, line in enumerate(lines) if line.startswith("A100-40GB-SXM,"))
    cells = lines[row].split(",")
    cells[place] = ""
    lines[row] = ",".join(cells)
    (tmp_path / "gpus.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(CatalogFileError, match="only a TPU may leave it open"):
        load_catalog(tmp_path).gpus()
    with pytest.raises(ValueError, match="between TPU-v5e and its host is not published"):
        _ = CATALOG.gpu("TPU-v5e").host_gb_per_s
