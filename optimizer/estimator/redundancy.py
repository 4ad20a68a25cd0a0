"""Spare nodes of a service: how a buyer writes them, and what replicas may do when nodes are lost."""

import re
from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema

DEGRADED_UTILISATION_CAP = 0.95
"""Highest busy share of replicas after a loss of nodes, where nothing is said and the rate is an estimate."""
MOST_SPARE_NODES = 9


def spare_nodes(value: object) -> int:
    """`n+1`, `n+2`, …, or the number of nodes itself."""
    if isinstance(value, str):
        match = re.fullmatch(r"\s*[nN]\s*\+\s*([0-9]{1,2})\s*", value)
        if match is None:
            msg = f'expected spare nodes, found "{value}"; write e.g. n+1'
            raise ValueError(msg)
        return int(match[1])
    if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
        msg = f"expected spare nodes, found {value!r}; write e.g. n+1"
        raise ValueError(msg)
    return int(value)


SpareNodes = Annotated[
    int,
    BeforeValidator(spare_nodes),
    Field(ge=0, le=MOST_SPARE_NODES),
    WithJsonSchema({"type": ["integer", "string"], "description": "spare nodes, e.g. n+1"}),
]
