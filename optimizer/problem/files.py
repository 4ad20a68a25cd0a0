"""Files that a problem names (traffic profiles, model configurations): read in, so that the problem stands alone."""

import csv
import hashlib
import math
from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import Any

from optimizer.errors import Finding, ProblemFileError
from optimizer.problem.model_configs import inline_model
from optimizer.problem.positions import Findings, Path
from optimizer.problem.quantized_configs import quantized_weights
from optimizer.problem.texts import decode, read_file


def read_in_files(data: dict[str, Any], folder: FilePath, findings: Findings) -> tuple[tuple[str, str], ...]:
    """Replace the paths in `data` by what the files hold; return the files' names and SHA-256."""
    digests: dict[str, str] = {}
    for path, holder, key, reader in _file_values(data):
        name = holder[key]
        try:
            raw = read_file(folder / name, _IF_MISSING[key])
            text = decode(raw, name)
            holder[key] = reader(text, name)
            digests[name] = hashlib.sha256(raw).hexdigest()
            if key == "model" and holder.get("kind") in _SERVING:
                _settle_weights(holder, path[:-1], text, name, findings)
        except ProblemFileError as error:
            for finding in error.findings:
                findings.add(path, _with_place(finding, name), finding.hint)
        except ValueError as error:
            message, _, hint = str(error).partition("; ")
            findings.add(path, f"{name}: {message}", hint)
    return tuple(sorted(digests.items()))


_SERVING = ("service", "batch")


def _settle_weights(workload: dict[str, Any], path: Path, text: str, name: str, findings: Findings) -> None:
    """Take the weight format from a quantized checkpoint's `config.json`; another one written is a finding."""
    written = workload.get("weights")
    try:
        format_found = quantized_weights(text)
    except ValueError:
        if written is not None:
            return
        raise
    if format_found is None or written in (format_found, [format_found]):
        return
    if written is None:
        workload["weights"] = format_found
        return
    said = ", ".join(map(str, written)) if isinstance(written, list) else written
    message = f"weights are {said} here and {format_found} by the quantization_config of {name}"
    hint = f"write weights: {format_found}, leave the key out, or name the config.json of a model of that format"
    findings.add((*path, "weights"), message, hint)


_IF_MISSING = {
    "profile": "the path counts from the problem file; write there 24 or 48 rows with the multiplier last, "
    "or name a built-in profile: flat, office-hours, global",
    "model": "the path counts from the problem file; put the model's Hugging Face config.json there, name a model of "
    "the catalog (gpumix catalog list models), or write architecture: {…}",
}


def _with_place(finding: Finding, name: str) -> str:
    line = f" line {finding.line}" if finding.line else ""
    return f"{name}{line}: {finding.message}"


def _file_values(data: dict[str, Any]) -> Iterator[tuple[Path, dict[str, Any], str, Any]]:
    workloads = data.get("workloads")
    for index, workload in enumerate(workloads if isinstance(workloads, list) else ()):
        if not isinstance(workload, dict):
            continue
        traffic = workload.get("traffic")
        if isinstance(traffic, dict) and _is_path(traffic.get("profile"), ".csv"):
            yield ("workloads", index, "traffic", "profile"), traffic, "profile", profile_numbers
        if _is_path(workload.get("model"), ".json"):
            yield ("workloads", index, "model"), workload, "model", inline_model


def _is_path(value: Any, suffix: str) -> bool:
    """Whether a text is meant as a path: by its ending, or because it leads through folders."""
    if not isinstance(value, str) or "\0" in value:
        return False
    return value.lower().endswith(suffix) or (suffix == ".csv" and (value.startswith(".") or value.endswith("/")))


def profile_numbers(text: str, name: str) -> list[float]:
    """Numbers of the last column of a CSV, below a heading or not.

    Raises
    ------
    ValueError
        For a cell that is not a number ≥ 0, or a file without numbers.
    """
    numbers: list[float] = []
    rows = csv.reader(text.splitlines(), strict=False)
    for line, row in enumerate(rows, start=1):
        cells = [cell.strip() for cell in row]
        if not any(cells) or cells[0].startswith("#"):
            continue
        number = _number(cells[-1])
        if number is None and not numbers and line <= _HEADING_LINES:
            continue
        if number is None:
            msg = f'line {line}: expected a number ≥ 0, found "{cells[-1]}"; the last column holds the multipliers'
            raise ValueError(msg)
        numbers.append(number)
    if not numbers:
        msg = "no numbers in it; write 24 or 48 rows, the multiplier in the last column"
        raise ValueError(msg)
    return numbers


_HEADING_LINES = 5


def _number(cell: str) -> float | None:
    try:
        number = float(cell)
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None
