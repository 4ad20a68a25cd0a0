"""How the GPUs of a replica share a model: tensor, pipeline, data and expert parallel sizes, and which are legal."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from catalog.schema import LlmArchitecture
from optimizer.estimator.workloads import Batch, Service


class Layout(NamedTuple):
    """GPUs that split a layer (tensor), that hold layers of their own (pipeline), and that spread a mixture.

    `experts` GPUs of a stage hold whole routed experts each, shared by `data` groups of `tensor` GPUs with a copy of
    everything else (attention, KV cache, dense blocks); 1: the experts are split like every other weight.
    """

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    experts: int = 1

    @property
    def gpus(self) -> int:
        """GPUs of the replica."""
        return self.tensor * self.pipeline * self.data


def tensor_parallel_is_legal(model: LlmArchitecture, size: int) -> bool:
    """Whether `size` GPUs can share every layer: it divides the heads, and KV heads divide evenly or repeat evenly."""
    heads_split = model.attention_heads % size == 0
    return heads_split and (model.kv_heads % size == 0 or size % model.kv_heads == 0)


def expert_parallel_is_legal(model: LlmArchitecture, size: int) -> bool:
    """Whether the routed experts of a layer divide evenly over `size` GPUs."""
    return size == 1 or (model.experts > 1 and model.experts % size == 0)


def legal_tensor_parallel_sizes(model: LlmArchitecture, largest: int) -> tuple[int, ...]:
    """All legal sizes up to the largest node."""
    return tuple(size for size in range(1, largest + 1) if tensor_parallel_is_legal(model, size))


def listed(value: int | Sequence[int]) -> list[int]:
    """Sizes that a buyer gave as one or several, each once."""
    return [value] if isinstance(value, int) else sorted(set(value))


def replica_layouts(workload: Service | Batch, model: LlmArchitecture, largest_node: int) -> list[Layout]:
    """Layouts to try: those that fit a node, a pipeline stage being a layer at least."""
    return [
        Layout(tensor, stages, data, experts)
        for stages in listed(workload.pipeline_parallel)
        for tensor, data, experts in _stage_layouts(workload, model, largest_node)
        if tensor * data * stages <= largest_node and stages <= model.layers
    ]


def _stage_layouts(
    workload: Service | Batch, model: LlmArchitecture, largest_node: int
) -> Iterator[tuple[int, int, int]]:
    """(Tensor, data, expert) sizes of one pipeline stage; experts are spread over all GPUs of a stage or split."""
    wanted = workload.gpus_per_replica
    sizes = range(1, largest_node + 1) if wanted is None else listed(wanted)
    for experts in listed(workload.expert_parallel):
        if experts == 1:
            yield from (
                (size, 1, 1) for size in sizes if size <= largest_node and tensor_parallel_is_legal(model, size)
            )
        elif experts in sizes and expert_parallel_is_legal(model, experts):
            for tensor in legal_tensor_parallel_sizes(model, experts):
                if experts % tensor == 0:
                    yield tensor, experts // tensor, experts
