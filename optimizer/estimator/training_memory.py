"""Memory of training per GPU, every term named. Sizes in bytes.

total = context + 1.11 · (weights + gradients + optimizer + activations + logits); states after ZeRO (arXiv 1910.02054),
activations after Korthikanti et al. (arXiv 2205.05198) with attention that stores no score matrix (FlashAttention).
"""

from dataclasses import dataclass

from catalog.schema import LlmArchitecture
from optimizer.estimator.architecture import embedding_parameters
from optimizer.estimator.constants import constant

_FULL_PRECISION = ("fp32", "tf32")
_MASTER_BYTES = {"adamw": 12.0, "adamw-8bit": 2.0, "adamw-bf16": 4.0, "sgd": 8.0}
_FULL_OPTIMIZER_BYTES = {"adamw": 8.0, "adamw-8bit": 2.0, "adamw-bf16": 4.0, "sgd": 4.0}
_SHARDED = {"none": (), "zero1": ("optimizer",), "zero2": ("optimizer", "gradients")}
_ALL_STATES = ("weights", "gradients", "optimizer")


@dataclass(frozen=True, slots=True)
class TrainingPlan:
    """Settings of a training job, resolved: nothing is left to a default."""

    model: LlmArchitecture
    sequence: int
    micro_batch: int
    precision: str
    method: str
    sharding: str
    recompute: str
    optimizer: str
    stack: str
    lora_rank: int = 16
    whole_run: bool = True
    """Whether restarts and evaluation of a pre-training run count."""

    @property
    def micro_batch_tokens(self) -> float:
        """Tokens of one micro-batch."""
        return float(self.micro_batch * self.sequence)


@dataclass(frozen=True, slots=True)
class StateRecipe:
    """Bytes per trained parameter."""

    weights: float
    gradients: float
    optimizer: float

    @property
    def total(self) -> float:
        """Bytes per parameter in all (16 for mixed-precision AdamW)."""
        return self.weights + self.gradients + self.optimizer


def state_recipe(precision: str, optimizer: str) -> StateRecipe:
    """Bytes per parameter: mixed precision keeps 16-bit weights and gradients, an fp32 master and two fp32 moments.

    2 + 2 + 12 for AdamW (ZeRO, §3.1); 8-bit and 16-bit optimizers keep no master copy.
    """
    if precision in _FULL_PRECISION:
        return StateRecipe(4.0, 4.0, _FULL_OPTIMIZER_BYTES[optimizer])
    return StateRecipe(2.0, 2.0, _MASTER_BYTES[optimizer])


def training_state_bytes(parameters: float, precision: str = "bf16", optimizer: str = "adamw") -> float:
    """Weights, gradients and optimizer states of all parameters over all GPUs, fully sharded."""
    return parameters * state_recipe(precision, optimizer).total


def lora_parameters(model: LlmArchitecture, rank: int) -> float:
    """Trainable parameters of LoRA (arXiv 2106.09685) on every linear layer: rank × (inputs + outputs) each.

    Mixture of experts: attention only, as adapters on experts are unusual.
    """
    h, query, key_value = model.hidden_size, model.attention_heads * model.head_dim, model.kv_heads * model.head_dim
    attention = 2 * (h + query) + 2 * (h + key_value)
    feed_forward = (3 if model.gated_ffn else 2) * (h + model.ffn_size) if model.experts <= 1 else 0
    return float(model.layers * rank * (attention + feed_forward))


def frozen_weight_bytes(model: LlmArchitecture, method: str) -> float:
    """Weights that LoRA leaves alone: 2 B per parameter; QLoRA 0.55 B, embeddings and head at 2 B (2305.14314)."""
    if method == "lora":
        return 2 * model.parameters
    embeddings = min(embedding_parameters(model), model.parameters)
    return constant("qlora_weight_bytes") * (model.parameters - embeddings) + 2 * embeddings


def state_terms(plan: TrainingPlan) -> dict[str, float]:
    """Bytes of weights, gradients and optimizer states before any sharding."""
    recipe = state_recipe(plan.precision, plan.optimizer)
    if plan.method == "full":
        trained, frozen = plan.model.parameters, 0.0
    else:
        trained, frozen = lora_parameters(plan.model, plan.lora_rank), frozen_weight_bytes(plan.model, plan.method)
    return {
        "weights": frozen + trained * recipe.weights,
        "gradients": trained * recipe.gradients,
        "optimizer": trained * recipe.optimizer,
    }


def layer_activation_bytes(plan: TrainingPlan, tensor_parallel: int) -> float:
    """Activations that one layer stores per micro-batch: 0.91 · tokens · h · (10 + 4·kv/heads + 6·ffn/h) ÷ tp."""
    model = plan.model
    width = (
        model.ffn_size if model.experts <= 1 else (model.expert_ffn_size or model.ffn_size) * model.experts_per_token
    )
    tensors = 10 + 4 * model.kv_heads / model.attention_heads + 6 * width / model.hidden_size
    return constant("activation_share") * plan.micro_batch_tokens * model.hidden_size * tensors / tensor_parallel


def activation_bytes(plan: TrainingPlan, tensor_parallel: int) -> float:
    """Activations of all layers; with full recomputation only each layer's input, and one layer at a time."""
    one_layer = layer_activation_bytes(plan, tensor_parallel)
    if plan.recompute != "full":
        return plan.model.layers * one_layer
    return 2 * plan.micro_batch_tokens * plan.model.hidden_size * plan.model.layers + one_layer


def logits_bytes(plan: TrainingPlan, tensor_parallel: int) -> float:
    """Logits of a micro-batch and their gradient: 8.7 B per token and vocabulary entry."""
    return constant("logits_bytes") * plan.micro_batch_tokens * plan.model.vocabulary_size / tensor_parallel


def training_memory(plan: TrainingPlan, tensor_parallel: int, data_parallel: int) -> dict[str, float]:
    """Bytes per GPU by term; their sum is the prediction."""
    sharded = _SHARDED.get(plan.sharding, _ALL_STATES)
    terms = {
        name: size / tensor_parallel / (data_parallel if name in sharded else 1)
        for name, size in state_terms(plan).items()
    }
    terms["activations"] = activation_bytes(plan, tensor_parallel)
    terms["logits"] = logits_bytes(plan, tensor_parallel)
    terms["fragmentation"] = (constant("training_memory_slack") - 1) * sum(terms.values())
    terms["context"] = constant("training_context_bytes")
    return terms


def required_bytes(plan: TrainingPlan, tensor_parallel: int, data_parallel: int) -> float:
    """Memory per GPU that a run should have: the prediction × 1.21, which holds 80 % of measured runs."""
    return constant("training_memory_margin") * sum(training_memory(plan, tensor_parallel, data_parallel).values())
