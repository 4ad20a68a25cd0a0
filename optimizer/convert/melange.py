"""Instances of the cheapest-GPU-mix solver of Mélange (arXiv 2404.14527) and its descendants, read and checked.

The format: `gpu_info` maps each GPU type to its `cost` (USD per hour) and `tputs`, the requests per second that one
instance serves of each bucket (0 where it cannot serve the bucket); `workload_distribution` has the share of requests
of each bucket (rows by input length, columns by output length); `total_request_rate` is in requests per second.
`slice_factor` says how often that solver cuts each bucket; here buckets are split freely, so it is only checked.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from optimizer.errors import ProblemFileError
from optimizer.problem.load import parse_yaml
from optimizer.problem.messages import shown, suggestion
from optimizer.problem.positions import Findings, Path, Source, Span
from optimizer.quantities import LEAST_MEASURED, MOST_COUNT, MOST_MONEY, MOST_PER_S

SHARES_SUM_TO = 1e-3
"""Shares are printed with few digits; a sum further from 1 than this is a mistake."""
_KEYS = ("gpu_info", "workload_distribution", "total_request_rate", "slice_factor")
_GPU_KEYS = ("cost", "tputs", "max_count")

Matrix = tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class MelangeGpu:
    """A GPU type: price in USD per hour and instance, requests per second by bucket, most instances (None: any)."""

    name: str
    price_per_hour: float
    requests_per_s: Matrix
    most: int | None = None


@dataclass(frozen=True, slots=True)
class MelangeInstance:
    """A checked instance. Every matrix has the shape of `shares`."""

    gpus: tuple[MelangeGpu, ...]
    shares: Matrix
    requests_per_s: float
    source: str

    @property
    def buckets(self) -> tuple[tuple[int, int], ...]:
        """Row and column of every bucket that has requests."""
        return tuple((i, j) for i, row in enumerate(self.shares) for j, share in enumerate(row) if share > 0)

    @property
    def serving_types(self) -> tuple[MelangeGpu, ...]:
        """GPU types that serve at least one bucket that has requests."""
        return tuple(gpu for gpu in self.gpus if any(gpu.requests_per_s[i][j] > 0 for i, j in self.buckets))

    def serving(self, bucket: tuple[int, int]) -> tuple[MelangeGpu, ...]:
        """GPU types that can serve a bucket."""
        return tuple(gpu for gpu in self.gpus if gpu.requests_per_s[bucket[0]][bucket[1]] > 0)


def read_melange(text: str, name: str) -> MelangeInstance:
    """Read an instance given as JSON; `name` is the path of its file, for messages and as the source of its figures.

    Raises
    ------
    ProblemFileError
        With everything that is wrong, each with its place.
    """
    data = _read_json(text, name)
    reader = _Reader(Findings(_with_places(text, name)))
    instance = reader.instance(data, name)
    reader.findings.raise_if_any()
    if instance is None:
        msg = "an instance was refused without saying why"
        raise AssertionError(msg)
    return instance


class _Object(dict[str, Any]):
    """A JSON object that remembers the keys which came twice."""

    def __init__(self, pairs: Sequence[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        names = [key for key, _ in pairs]
        self.repeated = sorted({key for key in names if names.count(key) > 1}) if len(self) < len(names) else []


def _read_json(text: str, name: str) -> Any:
    source = Source(name, text)
    try:
        return json.loads(text, object_pairs_hook=_Object)
    except json.JSONDecodeError as error:
        found = source.finding_at(Span(error.lineno, error.colno), f"not JSON: {error.msg[:1].lower()}{error.msg[1:]}")
    except RecursionError:
        found = source.finding_at(None, "nested too deeply", "write it flatter")
    except ValueError as error:  # a number of more digits than Python reads
        found = source.finding_at(None, f"not readable as JSON: {error}")
    raise ProblemFileError([found])


def _with_places(text: str, name: str) -> Source:
    """The text with the place of every value, where it is YAML too (as most JSON is)."""
    try:
        return parse_yaml(text, name)[1].source
    except ProblemFileError:
        return Source(name, text)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Turns JSON data into an instance and notes what is wrong."""

    findings: Findings

    def instance(self, data: Any, name: str) -> MelangeInstance | None:
        if not isinstance(data, _Object):
            self.findings.add((), f"expected an object with {', '.join(_KEYS)}, found {shown(data)}")
            return None
        self.keys(data, (), _KEYS, ("gpu_info", "workload_distribution", "total_request_rate"))
        shares = self.shares(data["workload_distribution"]) if "workload_distribution" in data else None
        gpus = self.gpus(data["gpu_info"], shares) if "gpu_info" in data else ()
        rate = self.rate(data) if "total_request_rate" in data else None
        self.slice_factor(data)
        found = tuple(gpus)
        if shares is None or rate is None:
            return None
        instance = MelangeInstance(found, shares, rate, name.replace("\\", "/").rpartition("/")[2])
        if not self.findings.items and not instance.serving_types:
            message = "no GPU type serves any bucket that has requests, so no mix can"
            self.findings.add(("gpu_info",), message, "write throughputs above 0", at_key=True)
        return instance

    def keys(self, data: _Object, path: Path, known: Sequence[str], needed: Iterable[str]) -> None:
        """Note unknown keys, keys that come twice, and keys that are missing."""
        for key in data.repeated:
            self.findings.add((*path, key), f'the key "{key}" comes twice', "keep one of the two", at_key=True)
        for key in data:
            if key not in known:
                self.findings.add((*path, key), f'unknown key "{key}"', suggestion(key, known, "keys"), at_key=True)
        for key in needed:
            if key not in data:
                self.findings.add((*path, key), f'missing key "{key}"', _NEEDED[key])

    def number(self, value: Any, path: Path, what: str, least: float = 0.0, most: float = math.inf) -> float | None:
        """The value as a finite number of at least `least`; else None, and a finding."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.findings.add(path, f"expected {what}, a number, found {shown(value)}")
            return None
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isnan(number):
            self.findings.add(path, f"{what} is not a number (NaN)", "write the figure, or 0")
        elif number < least:
            self.findings.add(path, f"negative {what}: {value}", "write 0 or more")
        elif number > most or math.isinf(number):
            self.findings.add(path, f"{what} is too large: {number:g}", f"write at most {most:g}")
        else:
            return number
        return None

    def count(self, value: Any, path: Path, what: str, least: int) -> int | None:
        """The value as a whole number (2 and 2.0 are the same)."""
        number = self.number(value, path, what, -math.inf, MOST_COUNT)
        if number is None:
            return None
        if number != int(number) or number < least:
            self.findings.add(path, f"{what} must be a whole number ≥ {least}, found {value}", f"write {least} or more")
            return None
        return int(number)

    def matrix(self, value: Any, path: Path, what: str, most: float) -> Matrix | None:
        """Rows of equal length of numbers ≥ 0, at least one."""
        if not isinstance(value, list) or not value:
            found = "an empty list" if value == [] else shown(value)
            self.findings.add(path, f"expected rows of numbers ({what} by bucket), found {found}", "write [[…], …]")
            return None
        rows = [self.row(row, (*path, i), what, most) for i, row in enumerate(value)]
        whole = [row for row in rows if row is not None]
        if len(whole) < len(rows):
            return None
        for i, row in enumerate(whole):
            if len(row) != len(whole[0]):
                expected = f"{len(whole[0])} as the first row has"
                self.findings.add((*path, i), f"row {i + 1} has {len(row)} numbers, not {expected}", "fill the row up")
                return None
        return tuple(whole)

    def row(self, value: Any, path: Path, what: str, most: float) -> tuple[float, ...] | None:
        if not isinstance(value, list) or not value:
            found = "an empty list" if value == [] else shown(value)
            self.findings.add(path, f"expected a row of numbers ({what}), found {found}", "write [0.2, 0.1, …]")
            return None
        numbers = [self.number(one, (*path, j), what, most=most) for j, one in enumerate(value)]
        known = tuple(one for one in numbers if one is not None)
        return known if len(known) == len(numbers) else None

    def shares(self, value: Any) -> Matrix | None:
        path: Path = ("workload_distribution",)
        if value in ([], [[]]):
            self.findings.add(path, "an empty distribution", "write the share of each bucket, e.g. [[1]]")
            return None
        shares = self.matrix(value, path, "share", math.inf)
        total = math.fsum(share for row in shares or () for share in row)
        if shares is not None and abs(total - 1) > SHARES_SUM_TO:
            self.findings.add(
                path, f"shares sum to {total:g}, not 1", "write shares such as 0.25, not counts or percent"
            )
            return None
        return shares

    def gpus(self, value: Any, shares: Matrix | None) -> Iterator[MelangeGpu]:
        path: Path = ("gpu_info",)
        if not isinstance(value, _Object) or not value:
            found = "no GPU types" if value == {} else f"expected an object of GPU types, found {shown(value)}"
            self.findings.add(path, found, 'write {"A10G": {"cost": 1.01, "tputs": [[2, 1], …]}, …}')
            return
        self.keys(value, path, tuple(value), ())
        for name, entry in value.items():
            gpu = self.gpu(name, entry, shares)
            if gpu is not None:
                yield gpu

    def gpu(self, name: str, entry: Any, shares: Matrix | None) -> MelangeGpu | None:
        path: Path = ("gpu_info", name)
        if not name or not name.isprintable():
            self.findings.add(path, f"the name {name!r} of a GPU type cannot be used", "write a text", at_key=True)
            return None
        if not isinstance(entry, _Object):
            self.findings.add(path, f"expected an object with cost and tputs, found {shown(entry)}")
            return None
        self.keys(entry, path, _GPU_KEYS, ("cost", "tputs"))
        price = self.number(entry.get("cost", 0), (*path, "cost"), "price", most=MOST_MONEY)
        rates = self.rates(entry["tputs"], (*path, "tputs"), shares) if "tputs" in entry else None
        most = entry.get("max_count")
        limit = None if most is None else self.count(most, (*path, "max_count"), "max_count", 0)
        return None if price is None or rates is None else MelangeGpu(name, price, rates, limit)

    def rates(self, value: Any, path: Path, shares: Matrix | None) -> Matrix | None:
        rates = self.matrix(value, path, "throughput", MOST_PER_S)
        if rates is None:
            return None
        for i, row in enumerate(rates):
            for j, rate in enumerate(row):
                if 0 < rate < LEAST_MEASURED:
                    message = f"throughput {rate:g} is below {LEAST_MEASURED:g} requests/s"
                    self.findings.add((*path, i, j), message, "write 0 if this type cannot serve the bucket")
        if shares is not None and _shape(rates) != _shape(shares):
            turned = _shape(rates)[::-1] == _shape(shares)
            message = f"shape {_size(rates)} is not {_size(shares)}, that of workload_distribution"
            self.findings.add(path, message, "rows and columns are exchanged" if turned else "one number per bucket")
        return rates

    def rate(self, data: Mapping[str, Any]) -> float | None:
        path: Path = ("total_request_rate",)
        return self.number(data["total_request_rate"], path, "request rate", most=MOST_PER_S)

    def slice_factor(self, data: Mapping[str, Any]) -> None:
        if "slice_factor" in data:
            self.count(data["slice_factor"], ("slice_factor",), "slice_factor", 1)


_NEEDED = {
    "gpu_info": "write the price and the throughputs of each GPU type",
    "workload_distribution": "write the share of each bucket",
    "total_request_rate": "write the requests per second of all buckets together",
    "cost": "write the price in USD per hour, 0 if it is free",
    "tputs": "write the requests per second of each bucket",
}


def _shape(matrix: Matrix) -> tuple[int, int]:
    return len(matrix), len(matrix[0])


def _size(matrix: Matrix) -> str:
    return "x".join(map(str, _shape(matrix)))
