"""Headers of people's own price tables: our columns under any case, and columns that a reader must not pass over."""

import re
from collections.abc import Collection, Iterable, Mapping

from catalog.errors import CatalogFileError

_LOOKALIKES = {
    "gpus_per_node": r"qty|quantity|count|gpus?|((no|n|num|number)( of)? )?gpus|(gpus?|cards?|accelerators?) "
    r"(count|qty|quantity|number|per (node|instance|vm|server))|gpucount|gpuqty|numgpus|cards|accelerators",
    "term_months": r"(.+ )?(term|commitment|duration)( .+)?|contract (length|months|years)|months|years",
    "purchase_option": r"(.+ )?purchase( .+)?|purchasing( .+)?|(pricing|price|billing|contract) (model|type|option)|"
    r"(is )?(spot|preemptible|interruptible)|(is )?on demand|option|capacity type",
    "currency": r"(.+ )?currency( .+)?|ccy|curr",
    "per": r"(price |billing )?(unit|basis)|price per",
}  # fmt: skip
"""Names that mean one of our columns, whose default would be wrong if the column were passed over."""


class Header:
    """The columns of a table, by name whatever their case and word separators."""

    def __init__(self, names: Iterable[str], label: str) -> None:
        self._names = tuple(names)
        self._label = label

    def find(self, name: str) -> str:
        """The header's own spelling of `name`; `name` itself if there is none.

        Raises CatalogFileError where several columns differ from it by their case alone.
        """
        if name in self._names:
            return name
        found = [other for other in self._names if _plain(other) == _plain(name)]
        if len(found) > 1:
            msg = f"columns: {' and '.join(found)} are both {name}; rename one of them"
            raise CatalogFileError(self._label, 1, None, msg)
        return found[0] if found else name

    def unread(self, read: Mapping[str, str]) -> list[str]:
        """Columns that none of `read` (our column → theirs) stands for.

        Raises CatalogFileError for one that looks like a column of ours that the table does not have otherwise.
        """
        left = [name for name in self._names if name and name not in read.values()]
        likely = [(name, ours) for name in left if (ours := _meaning(name, read))]
        if likely:
            said = "; ".join(f"{name!r} looks like {ours}" for name, ours in likely)
            example = " ".join(f"--column {ours}={_quoted(name)}" for name, ours in likely)
            msg = f"columns: {said}, but is not read; write {example}, or take the column out of the file"
            raise CatalogFileError(self._label, 1, None, msg)
        return left


def _meaning(name: str, read: Collection[str]) -> str:
    """Our column that a name of theirs looks like, if the table has none for it yet."""
    words = _plain(name).replace("_", " ")
    return next(
        (ours for ours, like in _LOOKALIKES.items() if ours not in read and re.fullmatch(like, words)),
        "",
    )


def _plain(name: str) -> str:
    """`GPUs per node`, `gpus-per-node` and `GpusPerNode` are one name."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", "_", name)
    return re.sub(r"[\W_]+", "_", apart.casefold()).strip("_")


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[\w.-]+", name) else f"'{name}'"
