"""Files that a problem names (traffic profiles, model configurations): read in, so that the problem stands alone."""

import csv
import hashlib
import json
import math
from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import Any

from optimizer.errors import Finding, ProblemFileError
from optimizer.problem.positions import Findings, Path
from optimizer.problem.texts import decode, read_file

LLAMA_LIKE = ("llama", "mistral", "mixtral", "qwen2", "qwen3", "qwen3_moe", "phi3", "gemma", "gemma2")
"""`model_type`s whose shape is that of Llama: gated feed-forward blocks, RMS norms, rotary positions."""
_TIED_BY_DEFAULT = ("gemma", "gemma2")
_QKV_BIAS = ("qwen2",)


def read_in_files(data: dict[str, Any], folder: FilePath, findings: Findings) -> tuple[tuple[str, str], ...]:
    """Replace the paths in `data` by what the files hold; return the files' names and SHA-256."""
    digests: dict[str, str] = {}
    for path, holder, key, reader in _file_values(data):
        name = holder[key]
        try:
            raw = read_file(folder / name)
            holder[key] = reader(decode(raw, name), name)
            digests[name] = hashlib.sha256(raw).hexdigest()
        except ProblemFileError as error:
            for finding in error.findings:
                findings.add(path, _with_place(finding, name), finding.hint)
        except ValueError as error:
            message, _, hint = str(error).partition("; ")
            findings.add(path, f"{name}: {message}", hint)
    return tuple(sorted(digests.items()))


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
    return isinstance(value, str) and value.lower().endswith(suffix) and "\0" not in value


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


def inline_model(text: str, name: str) -> dict[str, Any]:
    """A Hugging Face `config.json` of a Llama-like model as `{name, architecture}` (transformers' configuration keys).

    Raises
    ------
    ValueError
        If the text is not JSON, or the model is of another family.
    """
    try:
        config = json.loads(text)
    except (ValueError, RecursionError) as error:
        msg = f"not JSON: {error}"
        raise ValueError(msg) from None
    family = config.get("model_type") if isinstance(config, dict) else None
    if family not in LLAMA_LIKE:
        known = ", ".join(LLAMA_LIKE)
        msg = f"model_type {family!r} is not one of {known}; write model: {{architecture: {{…}}}}"
        raise ValueError(msg)
    missing = [key for key in _REQUIRED if key not in config]
    if missing:
        msg = f"lacks {', '.join(missing)}; write model: {{architecture: {{…}}}}"
        raise ValueError(msg)
    title = config.get("_name_or_path") or FilePath(name).parent.name or FilePath(name).stem
    return {"name": str(title), "architecture": _architecture(config, family)}


_REQUIRED = ("num_hidden_layers", "hidden_size", "num_attention_heads", "vocab_size")


def _architecture(config: dict[str, Any], family: str) -> dict[str, Any]:
    experts = config.get("num_local_experts") or config.get("num_experts") or 1
    expert_ffn = config.get("moe_intermediate_size") if experts != 1 else None
    shape = {
        "layers": config["num_hidden_layers"],
        "hidden": config["hidden_size"],
        "heads": config["num_attention_heads"],
        "kv_heads": config.get("num_key_value_heads"),
        "head_dim": config.get("head_dim"),
        "ffn": expert_ffn or config.get("intermediate_size"),
        "vocabulary": config["vocab_size"],
        "tied_embeddings": config.get("tie_word_embeddings", family in _TIED_BY_DEFAULT),
        "qkv_bias": config.get("attention_bias", family in _QKV_BIAS),
        "experts": experts,
        "experts_per_token": config.get("num_experts_per_tok") if experts != 1 else None,
    }
    return {key: value for key, value in shape.items() if value is not None}
