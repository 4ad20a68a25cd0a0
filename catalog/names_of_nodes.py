"""What the names of clouds' node types say: which GPU is in them (`importing/instance_types.csv`)."""

import csv
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files


def gpus_of_node(instance_type: str, provider: str | None = None) -> set[str]:
    """Ids of the GPUs that nodes of that name have (any provider's for None); empty where the table knows none."""
    name = instance_type.casefold()
    known = _patterns().values() if provider is None else (_patterns().get(provider, ()),)
    return {gpu_id for patterns in known for pattern, gpu_id in patterns if name and fnmatchcase(name, pattern)}


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
