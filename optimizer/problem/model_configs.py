"""Hugging Face `config.json` files: the shape of a model, by the family it says it belongs to.

`model_families.csv` says for each `model_type` where each figure stands: the keys to try, separated by `|`; a number
or true/false stands for the family's default; `a+b`, `a*b` and `a/b` combine two of them; `hidden` is the hidden size.
"""

import csv
import json
import operator
import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

_FILE = "model_families.csv"
_NUMBER = re.compile(r"\d+")
_SUM = re.compile(r"(.+?)([+*/])(.+)")
_OPERATORS: Mapping[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "*": operator.mul,
    "/": operator.truediv,
}
_REQUIRED = ("layers", "hidden", "heads", "vocabulary")
_WHOLE = ("layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "vocabulary")
_EXPERTS = ("experts", "experts_per_token", "expert_ffn", "shared_experts")
_LATENT = {"kv_lora_rank": "kv_lora_rank", "q_lora_rank": "q_lora_rank",
           "qk_rope_head_dim": "rope_head_dim", "v_head_dim": "value_head_dim"}  # fmt: skip
_WINDOWED = ("sliding_attention", "chunked_attention")
_HINT = "write model: {architecture: {…}}"


@cache
def model_families() -> Mapping[str, Mapping[str, str]]:
    """Rows of model_families.csv by `model_type`."""
    text = (resources.files("optimizer.problem") / _FILE).read_text(encoding="utf-8")
    return {row["model_type"]: row for row in csv.DictReader(text.splitlines())}


def inline_model(text: str, name: str) -> dict[str, Any]:
    """A `config.json` as `{name, architecture}`; of a model that also sees or hears, the language part.

    Raises
    ------
    ValueError
        If the text is not JSON, the family is not known, or a figure is missing or no number.
    """
    config = _language_part(_parsed(text))
    family = config.get("model_type")
    row = model_families().get(family) if isinstance(family, str) else None
    if row is None:
        msg = f"model_type {family!r} is not one of {', '.join(model_families())}; {_HINT}"
        raise ValueError(msg)
    missing = [_alternatives(row[field])[0] for field in _REQUIRED if _figure(config, row[field]) is None]
    if missing:
        msg = f"lacks {', '.join(missing)}; {_HINT}"
        raise ValueError(msg)
    title = config.get("_name_or_path") or Path(name).parent.name or Path(name).stem
    return {"name": str(title), "architecture": architecture(config, row)}


def architecture(config: Mapping[str, Any], row: Mapping[str, str]) -> dict[str, Any]:
    """The keys of `architecture:` in a problem file, for a configuration of the family `row`."""
    shape: dict[str, Any] = {field: _whole(_figure(config, row[field])) for field in _WHOLE}
    if _has_one_kv_head(config):
        shape["kv_heads"] = 1
    shape |= {"gated_ffn": row["gated"] == "true", "tied_embeddings": _flag(config, row["tied"])}
    shape |= {"qkv_bias": _flag(config, row["bias"]), "learned_positions": _whole(_figure(config, row["positions"]))}
    shape |= _experts(config, row, int(shape["layers"]))
    shape |= _windows(config, row, int(shape["layers"]))
    if config.get("kv_lora_rank"):
        shape |= {field: config.get(key) for key, field in _LATENT.items()}
        shape["kv_heads"] = shape["heads"]
    return {key: value for key, value in shape.items() if value is not None}


def _parsed(text: str) -> dict[str, Any]:
    try:
        config = json.loads(text)
    except (ValueError, RecursionError) as error:
        msg = f"not JSON: {error}"
        raise ValueError(msg) from None
    return config if isinstance(config, dict) else {}


def _language_part(config: dict[str, Any]) -> dict[str, Any]:
    part = config.get("text_config")
    if not isinstance(part, dict) or "model_type" not in part:
        return config
    shared: dict[str, Any] = {key: config[key] for key in ("tie_word_embeddings", "_name_or_path") if key in config}
    return shared | part


def _has_one_kv_head(config: Mapping[str, Any]) -> bool:
    """Multi-query attention, which Falcon (first generation) and StarCoder say by a flag that is on by default."""
    flagged = config.get("model_type") in ("falcon", "gpt_bigcode") and config.get("multi_query", True)
    return bool(flagged) and not config.get("new_decoder_architecture")


def _experts(config: Mapping[str, Any], row: Mapping[str, str], layers: int) -> dict[str, Any]:
    found = {field: _whole(_figure(config, row[field])) for field in _EXPERTS}
    if not found["experts"] or found["experts"] == 1:
        return {}
    step = _whole(_figure(config, row["sparse_step"])) or 1
    listed = config.get("mlp_only_layers")
    dense = _whole(_figure(config, row["dense_layers"])) or 0
    dense += layers - layers // step + (len(listed) if isinstance(listed, list) else 0)
    return {**found, "dense_layers": dense or None}


def _windows(config: Mapping[str, Any], row: Mapping[str, str], layers: int) -> dict[str, Any]:
    window = _whole(_figure(config, row["window"]))
    if not window:
        return {}
    kinds = config.get("layer_types")
    if isinstance(kinds, list):
        windowed = sum(kind in _WINDOWED for kind in kinds)
    else:
        every = _whole(_figure(config, row["full_every"])) or 0
        windowed = layers - layers // every if every else layers
    return {"sliding_window": window, "sliding_window_layers": windowed} if windowed else {}


def _alternatives(cell: str) -> list[str]:
    return cell.split("|")


def _figure(config: Mapping[str, Any], cell: str) -> float | None:
    """The first alternative of a cell that the configuration answers."""
    values = (_value(config, text) for text in _alternatives(cell) if text)
    return next((value for value in values if value is not None), None)


def _value(config: Mapping[str, Any], text: str) -> float | None:
    combined = _SUM.fullmatch(text)
    if combined:
        left, right = _value(config, combined[1]), _value(config, combined[3])
        return None if not left or not right else _OPERATORS[combined[2]](left, right)
    if _NUMBER.fullmatch(text):
        return float(text)
    if text == "hidden":
        return _figure(config, model_families()[config["model_type"]]["hidden"])
    value = _at(config, text)
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    msg = f"{text} is {value!r}, not a number; {_HINT}"
    raise ValueError(msg)


def _at(config: Mapping[str, Any], key: str) -> Any:
    value: Any = config
    for part in key.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _flag(config: Mapping[str, Any], cell: str) -> bool:
    *keys, default = _alternatives(cell)
    given = next((config[key] for key in keys if config.get(key) is not None), None)
    return default == "true" if given is None else bool(given)


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
