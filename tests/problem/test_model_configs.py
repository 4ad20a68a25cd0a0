"""`config.json` files: every family of transformers' configuration that the planner can describe."""

import json
from pathlib import Path
from typing import Any

import pytest

from catalog import load_catalog
from optimizer.errors import ProblemFileError
from optimizer.estimator.architecture import architecture_of
from optimizer.estimator.memory import kv_bytes_per_token
from optimizer.estimator.workloads import InlineModel
from optimizer.problem.load import parse_problem
from optimizer.problem.model_configs import inline_model, model_families

CONFIGS: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "model_configs.json").read_text())
CATALOG = load_catalog()


def described(config: dict[str, Any]) -> Any:
    """The record that the estimator makes of a configuration."""
    return architecture_of(InlineModel.model_validate(inline_model(json.dumps(config), "some-model/config.json")))


@pytest.mark.parametrize("name", CONFIGS)
def test_a_config_json_is_the_model_of_the_catalog(name: str) -> None:
    """Parameters within 0.1 %, and the same key-value cache, experts and windows as the catalog's row."""
    model, known = described(CONFIGS[name]), CATALOG.model(name)
    assert model.parameters == pytest.approx(known.parameters, rel=1e-3)
    assert kv_bytes_per_token(model, "fp16") == kv_bytes_per_token(known, "fp16")
    shape = ("layers", "experts", "experts_per_token", "shared_experts", "dense_layers", "kv_lora_rank")
    windows = ("sliding_window_tokens", "sliding_window_layers", "tied_embeddings", "learned_positions")
    for field in (*shape, *windows):
        assert getattr(model, field) == getattr(known, field), field


def test_the_families_that_buyers_ask_for_are_known() -> None:
    """Dense, mixture-of-experts and latent-attention families by the name that transformers gives them."""
    wanted = "llama mistral mixtral qwen2 qwen3 qwen3_moe gemma2 gemma3_text phi3 gpt_oss deepseek_v2 deepseek_v3"
    wanted += " kimi_k2 llama4_text falcon gpt_neox bloom opt mpt starcoder2 cohere dbrx glm4_moe olmo2"
    assert set(wanted.split()) <= set(model_families())


@pytest.mark.parametrize("family", ["mamba2", "nemotron_h", "t5", "qwen3_next", "", None, 3])
def test_an_unknown_family_is_refused_with_a_way_out(family: Any) -> None:
    """State-space, encoder-decoder and unknown models are no guess: the message says what to write."""
    with pytest.raises(ValueError, match=r"is not one of llama, .*write model: \{architecture") as caught:
        inline_model(json.dumps({"model_type": family, "num_hidden_layers": 4}), "config.json")
    assert repr(family) in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_hidden_layers": "32"}, "num_hidden_layers is '32', not a number"),
        ({"num_key_value_heads": True}, "num_key_value_heads is True, not a number"),
        ({"vocab_size": None}, "lacks vocab_size"),
    ],
)
def test_a_figure_of_the_wrong_type_is_named(change: dict[str, Any], message: str) -> None:
    """Text, flags and missing figures are told with their key."""
    with pytest.raises(ValueError, match=message):
        inline_model(json.dumps(CONFIGS["llama-3.1-8b"] | change), "config.json")


def test_layer_types_say_which_layers_have_a_window() -> None:
    """A list of layer types counts before the family's usual pattern."""
    types = ["sliding_attention"] * 3 + ["full_attention"] * 39
    assert described(CONFIGS["gemma-2-9b"] | {"layer_types": types}).sliding_window_layers == 3


def test_the_file_names_the_model_where_it_does_not_itself() -> None:
    """The folder's name stands for a configuration without `_name_or_path`."""
    assert inline_model(json.dumps(CONFIGS["phi-2"]), "models/phi-2/config.json")["name"] == "phi-2"
    named = CONFIGS["phi-2"] | {"_name_or_path": "microsoft/phi-2"}
    assert inline_model(json.dumps(named), "config.json")["name"] == "microsoft/phi-2"


SERVICE = """
name: bot
horizon: {months: 12, periods: once}
workloads:
- {name: chat, kind: service, model: config.json, traffic: {mean_requests_per_s: 1}, tokens: {input: 300, output: 50}%s}
"""


def loaded_with(folder: Path, quantization: dict[str, Any] | None, more: str = "") -> Any:
    """The workload of SERVICE, its model's configuration quantized so."""
    config = CONFIGS["llama-3.1-8b"] | ({"quantization_config": quantization} if quantization else {})
    (folder / "config.json").write_text(json.dumps(config))
    return parse_problem(SERVICE % more, folder=folder, catalog=CATALOG).problem.workloads[0]


GROUP = {"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": {"num_bits": 8}}}}
FLOAT_GROUP = {
    "quant_method": "compressed-tensors",
    "config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "float"}}},
}


@pytest.mark.parametrize(
    ("quantization", "weights"),
    [
        (None, "bf16"),
        ({"quant_method": "awq", "bits": 4}, "int4"),
        ({"quant_method": "gptq", "bits": 8}, "int8"),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8"),
        ({"quant_method": "mxfp4"}, "fp4"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "int4"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "fp4"),
        (GROUP, "int8"),
        (FLOAT_GROUP, "fp8"),
    ],
)
def test_weights_are_those_of_a_quantized_checkpoint(tmp_path: Path, quantization: Any, weights: str) -> None:
    """A 4-bit checkpoint is not planned as 16 bits only because nobody repeated it; written alike, it is as good."""
    assert loaded_with(tmp_path, quantization).weights == weights
    assert loaded_with(tmp_path, quantization, f", weights: {weights}").weights == weights


@pytest.mark.parametrize(
    ("quantization", "more", "place", "message"),
    [
        ({"quant_method": "awq", "bits": 4}, ", weights: bf16", "weights", "bf16 here and int4 by the quantization_"),
        ({"quant_method": "fp8"}, ", weights: [fp8, int4]", "weights", "fp8, int4 here and fp8 by"),
        ({"quant_method": "gptq", "bits": 3}, "", "model", "of no weight format that can be planned"),
        ({"quant_method": "aqlm"}, "", "model", "of no weight format that can be planned"),
    ],
)
def test_weights_that_the_checkpoint_has_not_are_refused(
    tmp_path: Path, quantization: Any, more: str, place: str, message: str
) -> None:
    """Two words on one thing are settled by the person, at the place of the workload's own word."""
    with pytest.raises(ProblemFileError) as caught:
        loaded_with(tmp_path, quantization, more)
    (finding,) = caught.value.findings
    assert finding.path == f"workloads[0].{place}"
    assert message in finding.message
    assert "weights" in finding.hint


def test_a_format_in_between_may_be_planned_by_its_nearest(tmp_path: Path) -> None:
    """What has no name here (3 bits) is planned as the person says."""
    assert loaded_with(tmp_path, {"quant_method": "gptq", "bits": 3}, ", weights: int4").weights == "int4"
