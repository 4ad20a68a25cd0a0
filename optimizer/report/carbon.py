"""What a plan emits, where it is limited or has a price."""

import math
from typing import Any


def emitted_tonnes(document: dict[str, Any]) -> float | None:
    """Tonnes of CO2e over the horizon: limit − slack, or the quantities paid for; None if nothing counts them."""
    limit = document["inputs"]["problem"].get("limits", {}).get("carbon")
    for row in document["constraints"] if limit is not None else ():
        if row["family"] == "carbon_limit":
            return float(limit - row["slack"])
    if document["inputs"]["problem"].get("finance", {}).get("carbon_price"):
        return math.fsum(line["quantity"] for line in document["cost_lines"] if line["term"] == "carbon_fee")
    return None
