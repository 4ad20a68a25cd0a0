"""The weight format that a Hugging Face `config.json` says of its checkpoint (`quantization_config`)."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

_INTEGERS: Mapping[float, str] = {4: "int4", 8: "int8"}
_FLOATS: Mapping[float, str] = {4: "fp4", 8: "fp8"}
_NAMED: Mapping[str, str] = {"fp8": "fp8", "fbgemm_fp8": "fp8", "mxfp4": "fp4", "nvfp4": "fp4"}
_BY_BITS = ("awq", "gptq", "autoround", "auto-round", "hqq", "eetq", "quanto", "auto_gptq")
_HINT = "write weights: the format that comes nearest (int4, int8, fp8, fp4, bf16)"


def quantized_weights(text: str) -> str | None:
    """The weight format of a checkpoint by its `config.json`; None where that says nothing of quantization.

    Raises
    ------
    ValueError
        If the weights are quantized, but to no format that can be planned.
    """
    config = json.loads(text)
    found = _quantization(config) if isinstance(config, dict) else None
    if found is None:
        return None
    method = str(found.get("quant_method") or found.get("quant_algo") or "").lower()
    formats = {_NAMED[method]} if method in _NAMED else set(_formats(found, method))
    known = formats - {None}
    if len(known) != 1 or None in formats:
        msg = f'its quantization_config ("{method[:40]}") is of no weight format that can be planned; {_HINT}'
        raise ValueError(msg)
    return known.pop()


def _quantization(config: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What the model, or the language part of one that also sees or hears, says of its quantization."""
    inner = config.get("text_config")
    for part in (config, inner):
        found = part.get("quantization_config") if isinstance(part, dict) else None
        if isinstance(found, dict) and found:
            return found
    return None


def _formats(found: Mapping[str, Any], method: str) -> Iterator[str | None]:
    if method == "bitsandbytes":
        four, eight = (found.get(key) is True for key in ("load_in_4bit", "load_in_8bit"))
        yield "int4" if four else "int8" if eight else None
    elif method in _BY_BITS:
        yield _INTEGERS.get(_bits(found.get("bits", found.get("w_bit"))))
    elif method == "modelopt":
        yield _NAMED.get(str(found.get("quant_algo", "")).lower())
    elif method == "compressed-tensors":
        groups = found.get("config_groups")
        for group in groups.values() if isinstance(groups, dict) else ():
            weights = group.get("weights") if isinstance(group, dict) else None
            weights = weights if isinstance(weights, dict) else {}
            names = _FLOATS if weights.get("type") == "float" else _INTEGERS
            yield names.get(_bits(weights.get("num_bits")))


def _bits(value: Any) -> float:
    return value if isinstance(value, int | float) else 0.0
