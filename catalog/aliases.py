"""Names as vendors, clouds, price files and measurement sets write them, mapped to ids of the catalog.

Two names are the same if their words agree without case, punctuation and order ("H100-SXM-80GB" is "H100-80GB-SXM"),
or their letters agree without separators, save between digits ("rtx4090"; but "llama-27b" is not "llama-2-7b"). What
that does not reach stands in `aliases.csv`; a name with several rows there is ambiguous. Names of what the catalog
lacks, near as they look to others, stand there with what may be offered for them (`gpu-other`), or with nothing.
"""

import difflib
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from importlib.resources.abc import Traversable

from catalog.errors import AmbiguousNameError, CatalogFileError, UnknownNameError
from catalog.rows import read_raw_rows

Key = tuple[str, ...]

KINDS = ("gpu", "gpu-word", "gpu-other", "model", "model-word", "model-other")
_WITHOUT_TARGET = ("-word", "-other")
_LETTERS_FOR_DIGITS = str.maketrans("oil", "011")


@dataclass(frozen=True, slots=True)
class Alias:
    """One row of `aliases.csv`: `name` may mean the id `target` (kind gpu, model), or no id (…-word, …-other)."""

    kind: str
    name: str
    target: str


def read_aliases(path: Traversable, label: str) -> tuple[Alias, ...]:
    """The rows of an alias file. Raises CatalogFileError for an unknown kind or an empty cell."""
    aliases = []
    for row in read_raw_rows(path, label, ("kind", "alias", "target")):
        alias = Alias(row["kind"], row["alias"], row["target"])
        if alias.kind not in KINDS:
            raise CatalogFileError(label, row.line, "kind", f"{alias.kind!r} is not one of {', '.join(KINDS)}")
        if not alias.name or not (alias.target or alias.kind.endswith(_WITHOUT_TARGET)):
            raise CatalogFileError(label, row.line, "alias", "an alias needs a name and the id it means")
        aliases.append(alias)
    return tuple(aliases)


class AliasTable:
    """Names of one kind (GPU or model).

    `ignored_words` carry no meaning ("nvidia", "instruct"); `others` are names of what is no row, with what to offer.
    """

    def __init__(
        self,
        kind: str,
        ids: Iterable[str],
        aliases: Iterable[tuple[str, str]],
        ignored_words: Collection[str] = (),
        others: Iterable[tuple[str, str]] = (),
    ) -> None:
        self._kind = kind
        self._ids = tuple(ids)
        self._ignored = frozenset(ignored_words)
        self._targets: dict[Key, dict[str, None]] = {}
        self._names: dict[str, str] = {}
        for alias, target in aliases:
            self._add(alias, target)
        self._own: dict[Key, str] = {key: row_id for row_id in self._ids for key in self._keys(row_id)}
        self._names.update({row_id.casefold(): row_id for row_id in self._ids})
        self._others: dict[str, list[str]] = {}
        for other, target in others:
            self._others.setdefault(other, []).extend([target] if target else [])

    def resolve(self, name: str) -> str:
        """The id that `name` means. Raises AmbiguousNameError with the choices, or UnknownNameError."""
        found = self.candidates(name)
        if len(found) == 1:
            return found[0]
        if found:
            raise AmbiguousNameError(name, found, self._kind)
        raise UnknownNameError(name, self.suggestions(name), self._kind)

    def candidates(self, name: str) -> tuple[str, ...]:
        """All ids that `name` may mean, in the order of the catalog; none if it is unknown."""
        for key in self._keys(name):
            if key in self._own:
                return (self._own[key],)
        for key in self._keys(name):
            if key in self._targets:
                return tuple(row_id for row_id in self._ids if row_id in self._targets[key])
        return ()

    def suggestions(self, name: str) -> tuple[str, ...]:
        """Up to three ids whose names look like `name`; first what it means with its digits written as digits.

        A name that holds all words of one of `others` is that product: what is to be offered for it, or nothing.
        """
        others = [targets for other, targets in self._others.items() if self._holds(name, other)]
        if others or not self._words(name):
            return tuple(dict.fromkeys(target for targets in others for target in targets))
        meant = self.candidates(_with_digits(name))
        near = difflib.get_close_matches(_with_digits(name), self._names, n=6, cutoff=0.6)
        near += difflib.get_close_matches(name.casefold(), self._names, n=6, cutoff=0.6)
        return tuple(dict.fromkeys((*meant, *(self._names[text] for text in near))))[:3]

    def unknown_targets(self) -> Mapping[str, str]:
        """Aliases that point to an id that is not in the catalog."""
        return {name: target for name, target in self._names.items() if target not in self._ids}

    def _add(self, alias: str, target: str) -> None:
        for key in self._keys(alias):
            self._targets.setdefault(key, {})[target] = None
        self._names.setdefault(alias.casefold(), target)

    def _holds(self, name: str, other: str) -> bool:
        """Whether `name` has all words of `other`, or is the same without separators."""
        return set(self._words(other)) <= set(self._words(name)) or self._keys(other)[1] == self._keys(name)[1]

    def _words(self, name: str) -> list[str]:
        return [word for word in _split(name) if word not in self._ignored]

    def _keys(self, name: str) -> tuple[Key, Key]:
        words = self._words(name)
        return tuple(sorted(words)), (re.sub(r"(?<!\d) | (?!\d)", "", " ".join(words)),)


def _split(name: str) -> list[str]:
    """Lower-case words of the last part of a path; socket generations (SXM4, SXM5) count as SXM."""
    words = re.findall(r"[a-z0-9]+", re.sub(r"(\d)\.(\d)", r"\1point\2", name.casefold().rsplit("/", 1)[-1]))
    return ["sxm" if re.fullmatch(r"sxm\d", word) else word for word in words]


def _with_digits(name: str) -> str:
    """The name in lower case with letters that look like digits as such, where they follow a digit: h10o is h100."""
    return re.sub(r"(?<=\d)[oil]+(?=[oil\d]*(?![a-z]))|(?<=[a-z])[oil]+(?=\d)", _digits, name.casefold())


def _digits(found: re.Match[str]) -> str:
    return found[0].translate(_LETTERS_FOR_DIGITS)
