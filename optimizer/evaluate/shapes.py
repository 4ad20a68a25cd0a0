"""Shape of a measured model: the row's own columns first, then the model catalog, then parameters alone."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from catalog.load import Catalog
from catalog.schema import LlmArchitecture
from optimizer.estimator.architecture import architecture_of, default_ffn
from optimizer.estimator.workloads import Architecture, InlineModel
from optimizer.evaluate.rows import catalog_model, positive, text
from optimizer.evaluate.types import NotPredictableError, UnreadableCellError

WIDTH_PER_LAYER = 128
"""Width ÷ depth of published dense models of 1 to 200 B parameters (LLaMA 7B to GPT-3: 102 to 128)."""
HEAD_WIDTH = 128
_PARAMETERS_PER_SHAPE = 12
_FEWEST_PARAMETERS = 1e5
_SHAPE_COLUMNS = ("layers", "hidden", "heads", "kv_heads")


@dataclass(frozen=True, slots=True)
class MeasuredModel:
    """A model as far as a row and the catalog tell; `shape_known` is False where it comes from parameters alone."""

    architecture: LlmArchitecture
    shape_known: bool


def measured_model(row: Mapping[str, str], catalog: Catalog, *, mixture: bool = False) -> MeasuredModel:
    """Model of a row; `mixture` says that it has experts.

    Raises
    ------
    UnreadableCellError
        If a count of parameters is in billions.
    NotPredictableError
        If neither the row nor the catalog tells its size.
    """
    total, active = _parameters(row, "params_total"), _parameters(row, "params_active")
    found = catalog_model(row, catalog)
    shape = {name: int(value) for name in _SHAPE_COLUMNS if (value := positive(row, name))}
    known = found is not None or {"layers", "hidden"} <= shape.keys()
    if found is None:
        if total is None:
            msg = f"model not in the catalog: {text(row, 'model')!r}, and column params_total is empty"
            raise NotPredictableError(msg)
        found = _described(row, active or total, shape)
    model = _with_columns(row, found, shape)
    model = replace(model, parameters=total or model.parameters, active_parameters=active or model.active_parameters)
    if mixture and model.experts <= 1:
        model = replace(model, experts=max(2, round(model.parameters / model.active_parameters)))
    return MeasuredModel(model, known)


def _parameters(row: Mapping[str, str], column: str) -> float | None:
    """Parameters of a column: their count. Raises UnreadableCellError if the cell can only be in billions."""
    count = positive(row, column)
    if count is not None and count < _FEWEST_PARAMETERS:
        msg = f"column {column}: found {text(row, column)!r}, write the count of parameters (8.03e9, not 8.03)"
        raise UnreadableCellError(msg)
    return count


def _described(row: Mapping[str, str], parameters: float, shape: Mapping[str, int]) -> LlmArchitecture:
    """Model from the row's shape; what it does not give is a dense transformer of that size, N = 12·L·h²."""
    layers, hidden = shape_by_parameters(parameters)
    layers, hidden = shape.get("layers", layers), shape.get("hidden", hidden)
    heads = shape.get("heads") or max(1, hidden // HEAD_WIDTH)
    described = Architecture(
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=shape.get("kv_heads"),
        vocabulary=int(positive(row, "vocab") or Architecture.model_fields["vocabulary"].default),
        parameters=parameters,
    )
    return architecture_of(InlineModel(architecture=described, name=text(row, "model") or "unnamed"))


def shape_by_parameters(parameters: float) -> tuple[int, int]:
    """Layers and width of a dense transformer: h = 128·L and N = 12·L·h², the width a multiple of 64."""
    layers = max(1, round((parameters / (_PARAMETERS_PER_SHAPE * WIDTH_PER_LAYER**2)) ** (1 / 3)))
    width = (parameters / (_PARAMETERS_PER_SHAPE * layers)) ** 0.5
    return layers, max(64, round(width / 64) * 64)


def _with_columns(row: Mapping[str, str], model: LlmArchitecture, shape: Mapping[str, int]) -> LlmArchitecture:
    """The model with the row's own columns in place of the catalog's."""
    changed = replace(
        model,
        layers=shape.get("layers", model.layers),
        hidden_size=shape.get("hidden", model.hidden_size),
        attention_heads=shape.get("heads", model.attention_heads),
        kv_heads=shape.get("kv_heads", model.kv_heads),
        vocabulary_size=int(positive(row, "vocab") or model.vocabulary_size),
    )
    if (changed.hidden_size, changed.attention_heads) != (model.hidden_size, model.attention_heads):
        width = max(1, changed.hidden_size // changed.attention_heads)
        changed = replace(changed, head_dim=width, ffn_size=default_ffn(changed.hidden_size), gated_ffn=True)
    return changed
