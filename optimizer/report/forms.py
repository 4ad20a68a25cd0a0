"""Documents and sections in the forms that programs and pages read."""

import csv
import io
import json
from collections.abc import Sequence
from typing import Any

COST_LINE_COLUMNS = (
    "term", "option", "period", "quantity", "unit", "unit_price", "amount", "npv", "currency", "source",
    "group", "name",
)  # fmt: skip


def json_text(document: Any) -> str:
    """A document as JSON; numbers in full."""
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def yaml_text(document: Any) -> str:
    """A document as YAML that this project's own reader reads back unchanged."""
    from optimizer.problem.load import dump_yaml

    return dump_yaml(document)


def csv_text(records: Sequence[dict[str, Any]], names: Sequence[str]) -> str:
    """Records as CSV with these columns, the heading always there; None is empty."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, names, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    writer.writerows(records)
    return buffer.getvalue()


def cost_lines_csv(document: dict[str, Any]) -> str:
    """The ledger of a plan document as CSV: one line per term, option and period."""
    lines = [{**line, "currency": document["currency"]} for line in document["cost_lines"]]
    return csv_text(lines, COST_LINE_COLUMNS)
