"""Memory of training per GPU, every term named. Sizes in bytes.

Model states after ZeRO (arXiv 1910.02054), activations after Korthikanti et al. (arXiv 2205.05198) with attention that
stores no score matrix (FlashAttention, arXiv 2205.14135).
"""

from dataclasses import dataclass, replace

from catalog.schema import LlmArchitecture
from optimizer.estimator.architecture import embedding_parameters, expert_parameters
from optimizer.estimator.constants import constant

_FULL_PRECISION = ("fp32", "tf32")
_MASTER_BYTES = {"adamw": 12.0, "adamw-8bit": 2.0, "adamw-bf16": 4.0, "adamw-paged": 0.0, "sgd": 8.0}
_FULL_OPTIMIZER_BYTES = {"adamw": 8.0, "adamw-8bit": 2.0, "adamw-bf16": 4.0, "adamw-paged": 0.0, "sgd": 4.0}
_SHARDED = {"none": (), "zero1": ("optimizer",), "zero2": ("optimizer", "gradients")}
_STATES = ("weights", "gradients", "optimizer")
_MOVING = ("gradients", "activations", "logits")
_MOMENTS_BYTES = 8.0
_OFFLOADED = {"none": (), "optimizer": ("optimizer",), "states": _STATES, "activations": ("activations",)}
_BYTES_16BIT = 2.0


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
    offload: str = "none"
    """What is kept in host memory: none | optimizer | states (weights too, one layer at a time) | activations."""
    optimizer_in_backward: bool = False
    """Each layer is updated as soon as its gradient is there, so gradients of one layer are held at a time.

    Of no use with gradient accumulation, which keeps them all."""
    chunked_loss: bool = False
    """The loss is taken over pieces of the micro-batch, so the logits are never all there."""
    trains_embeddings: bool = False
    """Adapters beside which the embeddings and the head are trained in full (new tokens, chat formats)."""
    gradient_accumulation: int = 1
    """Micro-batches per rank and optimizer step."""
    context_parallel: int = 1
    """GPUs over which each sequence is split."""
    expert_parallel: int = 1
    """GPUs over which the experts of a layer are spread."""

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

    2 + 2 + 12 for AdamW (ZeRO, §3.1); 8-bit (arXiv 2110.02861) and 16-bit optimizers keep no master copy, a paged one
    (QLoRA, arXiv 2305.14314 §3) leaves its states in host memory.
    """
    if precision in _FULL_PRECISION:
        return StateRecipe(4.0, 4.0, _FULL_OPTIMIZER_BYTES[optimizer])
    return StateRecipe(2.0, 2.0, _MASTER_BYTES[optimizer])


def lora_parameters(model: LlmArchitecture, rank: int) -> float:
    """Trainable parameters of LoRA (arXiv 2106.09685) on every linear layer: rank × (inputs + outputs) each.

    Mixture of experts: attention only, as adapters on experts are unusual.
    """
    h, query, key_value = model.hidden_size, model.attention_heads * model.head_dim, model.kv_heads * model.head_dim
    attention = 2 * (h + query) + 2 * (h + key_value)
    feed_forward = (3 if model.gated_ffn else 2) * (h + model.ffn_size) if model.experts <= 1 else 0
    return float(model.layers * rank * (attention + feed_forward))


def trained_parameters(plan: TrainingPlan) -> float:
    """Parameters that get gradients and optimizer states: all, or adapters (and embeddings where they are trained)."""
    if plan.method == "full":
        return plan.model.parameters
    embeddings = min(embedding_parameters(plan.model), plan.model.parameters) if plan.trains_embeddings else 0.0
    return lora_parameters(plan.model, plan.lora_rank) + embeddings


def frozen_weight_bytes(model: LlmArchitecture, method: str, precision: str = "bf16") -> float:
    """Weights that LoRA leaves alone: 2 B per parameter (4 B in fp32); QLoRA 0.6 B, embeddings and head at 2 B.

    The 0.6 B are 4 bits, scales and what is left unquantised (arXiv 2305.14314 §3).
    """
    if method == "lora":
        return (4.0 if precision in _FULL_PRECISION else _BYTES_16BIT) * model.parameters
    embeddings = min(embedding_parameters(model), model.parameters)
    return constant("qlora_weight_bytes") * (model.parameters - embeddings) + _BYTES_16BIT * embeddings


def state_terms(plan: TrainingPlan) -> dict[str, float]:
    """Bytes of weights, gradients and optimizer states before any sharding; adapters keep no master copy."""
    recipe = state_recipe(plan.precision, plan.optimizer)
    if plan.method != "full" and plan.optimizer == "adamw":
        recipe = replace(recipe, optimizer=_MOMENTS_BYTES)
    trained = trained_parameters(plan)
    frozen = 0.0 if plan.method == "full" else frozen_weight_bytes(plan.model, plan.method, plan.precision)
    in_backward = plan.model.layers if plan.optimizer_in_backward and plan.gradient_accumulation == 1 else 1
    return {
        "weights": frozen + trained * recipe.weights,
        "gradients": trained * recipe.gradients / in_backward,
        "optimizer": trained * recipe.optimizer,
    }


def layer_activation_bytes(plan: TrainingPlan, tensor_parallel: int) -> float:
    """Activations that one layer stores per micro-batch: c · tokens · h · (10 + 4·kv/heads + 6·ffn/h) ÷ (tp · cp).

    In 16 bit: two norms' inputs and outputs and the query, key and value, attention output; gate, up and their product
    of a gated block (6·ffn/h), before and after the activation of a plain one (4·ffn/h).
    """
    model = plan.model
    width = (
        model.ffn_size if model.experts <= 1 else (model.expert_ffn_size or model.ffn_size) * model.experts_per_token
    )
    inner = 6 if model.gated_ffn else 4
    tensors = 10 + 4 * model.kv_heads / model.attention_heads + inner * width / model.hidden_size
    tokens = plan.micro_batch_tokens / (tensor_parallel * plan.context_parallel)
    return constant("activation_share") * tokens * model.hidden_size * tensors


def activation_bytes(
    plan: TrainingPlan, tensor_parallel: int, pipeline_parallel: int = 1, in_flight: float = 1
) -> float:
    """Activations of a stage's layers for the micro-batches in flight (as many as stages in the first one, 1F1B).

    With full recomputation each layer's input (over tp ranks all of it, unless sequences are split), and one layer.
    """
    one_layer = layer_activation_bytes(plan, tensor_parallel)
    layers = plan.model.layers / pipeline_parallel
    if plan.recompute != "full":
        return in_flight * layers * one_layer
    tokens = plan.micro_batch_tokens / plan.context_parallel
    return in_flight * _BYTES_16BIT * tokens * plan.model.hidden_size * layers + one_layer


def logits_bytes(plan: TrainingPlan, tensor_parallel: int) -> float:
    """Logits of a micro-batch and their gradient, per token and vocabulary entry; an eighth of them if in chunks."""
    tokens = plan.micro_batch_tokens / (tensor_parallel * plan.context_parallel)
    chunks = constant("loss_chunks") if plan.chunked_loss else 1.0
    return constant("logits_bytes") * tokens * plan.model.vocabulary_size / chunks


def _parameters_per_rank(plan: TrainingPlan, tensor_parallel: int, pipeline_parallel: int) -> float:
    """Largest share of the parameters on a rank: 1 ÷ (tp · pp), that of routed experts 1 ÷ (ep · pp).

    The first stage of a pipeline holds a whole table of embeddings (÷ tp); it is the fullest.
    """
    model = plan.model
    table = min(embedding_parameters(model) / (1 if model.tied_embeddings else 2), model.parameters) / model.parameters
    experts = 0.0
    if plan.expert_parallel > 1:
        experts = min(expert_parameters(model), model.parameters) / model.parameters
    staged = 1 - experts - (table if pipeline_parallel > 1 else 0.0)
    whole = table / tensor_parallel if pipeline_parallel > 1 else 0.0
    return (staged / tensor_parallel + experts / max(1, plan.expert_parallel)) / pipeline_parallel + whole


def training_memory(
    plan: TrainingPlan,
    tensor_parallel: int,
    data_parallel: int,
    pipeline_parallel: int = 1,
    micro_batches: float | None = None,
) -> dict[str, float]:
    """Bytes per GPU by term; their sum is the prediction. `micro_batches` per step limit those in flight.

    Pipelines add up their micro-batches' gradients in fp32 (Megatron's main gradients): twice the bytes.
    """
    sharded = _SHARDED.get(plan.sharding, _STATES)
    rank = _parameters_per_rank(plan, tensor_parallel, pipeline_parallel)
    terms = {name: size * rank / (data_parallel if name in sharded else 1) for name, size in state_terms(plan).items()}
    if pipeline_parallel > 1 and plan.precision not in _FULL_PRECISION:
        terms["gradients"] *= 2
    gathered = terms["weights"] * data_parallel * pipeline_parallel / plan.model.layers
    in_flight = min(pipeline_parallel, micro_batches or pipeline_parallel)
    terms["activations"] = activation_bytes(plan, tensor_parallel, pipeline_parallel, in_flight)
    for name in _OFFLOADED[plan.offload]:
        terms[name] = 0.0 if name != "activations" else layer_activation_bytes(plan, tensor_parallel)
    if plan.offload == "states" or (data_parallel > 1 and "weights" in sharded):
        terms["gathered layer"] = gathered
    terms["logits"] = logits_bytes(plan, tensor_parallel)
    terms["fragmentation"] = (constant("training_memory_slack") - 1) * sum(terms[name] for name in _MOVING)
    terms["workspace"] = constant("training_workspace_bytes")
    terms["context"] = constant("training_context_bytes")
    return terms


def required_bytes(plan: TrainingPlan, tensor_parallel: int, data_parallel: int) -> float:
    """Memory per GPU that a run should have: the prediction × the margin that holds 80 % of measured runs.

    A run that fits by the prediction alone is as likely as not to fail, so it counts as not fitting in practice.
    """
    return constant("training_memory_margin") * sum(training_memory(plan, tensor_parallel, data_parallel).values())
