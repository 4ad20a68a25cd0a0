"""Names as others write them: one GPU or model, several, or none with a suggestion."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog import AmbiguousNameError, UnknownNameError, load_catalog
from catalog.aliases import read_aliases
from catalog.load import DEFAULT_DIRECTORY

CATALOG = load_catalog()
GPU_IDS = [gpu.gpu_id for gpu in CATALOG.gpus()]


@pytest.mark.parametrize(
    ("name", "gpu_id"),
    [
        ("H100-SXM-80GB", "H100-80GB-SXM"),
        ("NVIDIA H100 80GB HBM3", "H100-80GB-SXM"),
        ("H100-NVL-94GB", "H100-94GB-NVL"),
        ("H100NVL", "H100-94GB-NVL"),
        ("A100-SXM4-80GB", "A100-80GB-SXM"),
        ("nvidia a100-pcie-40gb", "A100-40GB-PCIe"),
        ("A100-SXM-40GB", "A100-40GB-SXM"),
        ("RTX-4090-24GB", "RTX-4090"),
        ("NVIDIA GeForce RTX 4090", "RTX-4090"),
        ("rtx4090", "RTX-4090"),
        ("RTX-6000-Ada-48GB", "RTX-6000-Ada"),
        ("NVIDIA RTX 6000 Ada Generation", "RTX-6000-Ada"),
        ("RTX6000-Ada", "RTX-6000-Ada"),
        ("RTX-PRO-6000-BSE-96GB", "RTX-PRO-6000-SE"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX-PRO-6000-SE"),
        ("RTXPRO6000SE", "RTX-PRO-6000-SE"),
        ("A6000", "RTX-A6000"),
        ("Tesla T4", "T4"),
        ("B200", "B200-SXM"),
        ("B200-SXM-180GB", "B200-SXM"),
        ("NVIDIA GH200 144G HBM3e", "GH200-144GB"),
        ("H100-SXM-96GB-HBM2e-500W", "H100-96GB-SXM"),
        ("AMD Instinct MI300X", "MI300X"),
        ("V100-32GB", "V100-32GB-SXM2"),
    ],
)
def test_gpu_names_of_vendors_clouds_and_price_files(name: str, gpu_id: str) -> None:
    """Case, punctuation, word order, vendor words and memory sizes do not matter."""
    assert CATALOG.gpu(name).gpu_id == gpu_id


@pytest.mark.parametrize(
    ("name", "choices"),
    [
        ("A100", ("A100-40GB-PCIe", "A100-40GB-SXM", "A100-80GB-PCIe", "A100-80GB-SXM")),
        ("a100 80gb", ("A100-80GB-PCIe", "A100-80GB-SXM")),
        ("H100", ("H100-80GB-PCIe", "H100-80GB-SXM", "H100-94GB-NVL")),
        ("RTX 6000", ("RTX-6000-Ada", "RTX-PRO-6000-WS", "RTX-PRO-6000-SE")),
        ("RTXPRO6000", ("RTX-PRO-6000-WS", "RTX-PRO-6000-SE")),
        ("V100", ("V100-16GB-SXM2", "V100-32GB-SXM2", "V100-16GB-PCIe")),
    ],
)
def test_ambiguous_names_are_refused_with_the_choices(name: str, choices: tuple[str, ...]) -> None:
    """ "A100" is four GPUs of different price and memory; guessing one would be wrong."""
    with pytest.raises(AmbiguousNameError) as caught:
        CATALOG.gpu(name)
    assert caught.value.choices == choices
    assert all(choice in str(caught.value) for choice in choices)
    assert CATALOG.gpu_candidates(name) == choices


def test_an_h800_is_known_and_a_pcie_h200_is_the_nvl() -> None:
    """The export variant has a row; H200 for PCIe slots is sold as NVL only."""
    assert CATALOG.gpu_id("H800") == "H800-SXM"
    assert CATALOG.gpu_id("H200 PCIe") == "H200-NVL"


def test_l40_and_l40s_are_different_gpus() -> None:
    """One letter apart, but half the tensor rate."""
    assert CATALOG.gpu("l40").gpu_id == "L40"
    assert CATALOG.gpu("l40s").gpu_id == "L40S"


@pytest.mark.parametrize(("name", "suggestion"), [("RTX-409", "RTX-4090"), ("H10O-80GB-SXM", "H100-80GB-SXM")])
def test_a_near_miss_gets_a_suggestion(name: str, suggestion: str) -> None:
    """A slip of the pen is answered with the id that was meant."""
    with pytest.raises(UnknownNameError, match="did you mean") as caught:
        CATALOG.gpu(name)
    assert suggestion in caught.value.suggestions


@pytest.mark.parametrize(
    ("name", "suggestions"),
    [
        ("H10O", ("H100-80GB-PCIe", "H100-80GB-SXM", "H100-94GB-NVL")),
        ("H1O0-SXM", ("H100-80GB-SXM",)),
        ("B2OO", ("B200-SXM",)),
        ("l4Os", ("L40S",)),
        ("MI300", ("MI300X",)),
        ("MI300A", ()),
        ("Quadro RTX 6000", ()),
        ("NVIDIA Quadro RTX-6000", ()),
        ("Quadro RTX 8000", ()),
        ("A800", ("A100-80GB-SXM", "A100-80GB-PCIe")),
        ("NVIDIA A800-SXM4-80GB", ("A100-80GB-SXM", "A100-80GB-PCIe")),
        ("H800 PCIe", ()),
        ("H20-141GB", ("H20",)),
        ("GeForce RTX 3080 Ti", ()),
        ("rtx3080", ()),
        ("RTX 4090 D", ()),
        ("L20", ()),
        ("A30", ()),
        ("B100", ()),
        ("MI210", ()),
        ("TPU v4", ()),
        ("Trainium", ()),
        ("GPU", ()),
    ],
)
def test_what_is_offered_is_what_was_meant_first_and_never_another_product(
    name: str, suggestions: tuple[str, ...]
) -> None:
    """Letters for digits are a slip; a card that the catalog lacks is not the one whose name looks like it."""
    with pytest.raises(UnknownNameError) as caught:
        CATALOG.gpu(name)
    offered = caught.value.suggestions
    assert offered[: len(suggestions)] == suggestions
    assert bool(offered) == bool(suggestions)


def test_a_wholly_unknown_name_gets_no_suggestion() -> None:
    """No random GPU is offered for a name that resembles none."""
    with pytest.raises(UnknownNameError, match="the catalog has no such GPU") as caught:
        CATALOG.gpu("zzzzqqqq")
    assert caught.value.suggestions == ()
    assert CATALOG.gpu_candidates("zzzzqqqq") == ()


@pytest.mark.parametrize(
    ("name", "model_id"),
    [
        ("meta-llama/Llama-2-7b-hf", "llama-2-7b"),
        ("meta-llama/Meta-Llama-3.1-8B-Instruct", "llama-3.1-8b"),
        ("Qwen/Qwen2.5-72B-Instruct", "qwen2.5-72b"),
        ("Qwen/Qwen3-32B-FP8", "qwen3-32b"),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", "mixtral-8x7b"),
        ("mistralai/Mistral-7B-Instruct-v0.1", "mistral-7b-v0.1"),
        ("openai/gpt-oss-120b", "gpt-oss-120b"),
        ("tiiuae/falcon-180B-chat", "falcon-180b"),
        ("LLaMA-30B", "llama-33b"),
        ("GPT-3", "gpt-3-175b"),
        ("llama2-7b", "llama-2-7b"),
    ],
)
def test_model_names_of_hubs_and_papers(name: str, model_id: str) -> None:
    """Organisation, letter case and words such as "Instruct" do not change the shape."""
    assert CATALOG.model(name).model_id == model_id


def test_digits_are_not_run_together() -> None:
    """ "llama-27b" is a slip, not Llama 2 7B."""
    with pytest.raises(UnknownNameError) as caught:
        CATALOG.model("llama-27b")
    assert "llama-2-7b" in caught.value.suggestions
    assert "unknown model" in str(caught.value)


def test_an_ambiguous_model_is_refused() -> None:
    """ "llama-70b" is four models of two shapes."""
    with pytest.raises(AmbiguousNameError, match=r"model 'llama-70b' is ambiguous.*llama-3\.1-70b"):
        CATALOG.model("llama-70b")


def test_every_id_means_itself() -> None:
    """No alias shadows an id, in any letter case."""
    for gpu_id in GPU_IDS:
        assert CATALOG.gpu(gpu_id.upper()).gpu_id == gpu_id
    for model in CATALOG.models():
        assert CATALOG.model(model.model_id.upper()) is model


def test_every_alias_leads_to_a_row() -> None:
    """No alias points to an id that the catalog lacks."""
    models = {model.model_id for model in CATALOG.models()}
    for alias in read_aliases(DEFAULT_DIRECTORY.joinpath("aliases.csv"), "aliases.csv"):
        if alias.kind == "gpu":
            assert alias.target in CATALOG.gpu_candidates(alias.name), alias
        elif alias.kind == "model":
            assert alias.target in CATALOG.model_candidates(alias.name), alias
            assert alias.target in models


@given(st.sampled_from(GPU_IDS), st.randoms(use_true_random=False), st.sampled_from(["-", " ", "_", "  "]))
def test_words_may_stand_in_any_order(gpu_id: str, random: Random, separator: str) -> None:
    """Shuffling the words of an id, and the separator between them, keeps its meaning."""
    words = gpu_id.split("-")
    random.shuffle(words)
    assert CATALOG.gpu(separator.join(words)).gpu_id == gpu_id
