"""What the names of clouds' node types say: which GPU is in them (`importing/instance_types.csv`)."""

import csv
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files


def gpus_of_node(provider: str, instance_type: str) -> set[str]:
    """Ids of the GPUs that a provider's nodes of that name have; empty where the table does not know it."""
    name = instance_type.casefold()
    return {gpu_id for pattern, gpu_id in _patterns().get(provider, ()) if fnmatchcase(name, pattern)}


@cache
def _patterns() -> Mapping[str, Sequence[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = {}
    for row in read_facts("instance_types.csv"):
        found.setdefault(row["provider"], []).append((row["instance_pattern"].casefold(), row["gpu_id"]))
    return found


def read_facts(name: str) -> list[dict[str, str]]:
    """Rows of a table in `catalog/importing`."""
    text = files("catalog").joinpath("importing", name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))
