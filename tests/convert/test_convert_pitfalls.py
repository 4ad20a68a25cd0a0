"""What trips other solvers of this format: each input gets its right answer or an error that says what to write."""

import json
from typing import Any

import pytest

from optimizer.convert.melange import read_melange
from optimizer.errors import ProblemFileError
from tests.convert.melange_cases import answer, gpu, instance

SMALL_AND_BIG = {"small": gpu(1, [[0]]), "big": gpu(4, [[10]])}
CANNOT_AND_CAN = {"cannot": gpu(0.1, [[0]]), "can": gpu(4, [[10]])}
SENTINEL = {"cannot": gpu(0.1, [[10, 1e-9]]), "can": gpu(4, [[10, 10]])}
TWO_SIZES = {"a": gpu(1.0, [[10]]), "b": gpu(1.9, [[20]])}
CAPPED = {"g": gpu(1, [[10]], max_count=1), "h": gpu(9, [[50]])}

RIGHT_ANSWERS = [
    ("a type that cannot serve the only bucket", instance(SMALL_AND_BIG), {"big": 1}, 4),
    ("a zero where nothing is asked", instance({"small": gpu(1, [[10, 0]])}, [[1, 0]]), {"small": 1}, 1),
    ("a tiny rate is no reason to buy the wrong type", instance(CANNOT_AND_CAN, rate=5e-7), {"can": 1}, 4),
    ("a throughput of 1e-9 in place of 0", instance(SENTINEL, [[0.9999999, 1e-7]], 9), {"can": 1}, 4),
    ("a slice factor that is whole", instance(slice_factor=2.0), {"g": 1}, 1),
    ("a load far below one machine", instance(rate=9e-6), {"g": 1}, 1),
    ("a load below every tolerance", instance(rate=5e-7), {"g": 1}, 1),
    ("no requests", instance(rate=0), {}, 0),
    ("a type named cost", instance({"cost": gpu(1, [[10]])}, rate=25), {"cost": 3}, 3),
    ("a cap on instances", instance(CAPPED, rate=50), {"h": 1}, 9),
    ("no cap at all", instance({"g": gpu(1, [[10]], max_count=None)}, rate=50), {"g": 5}, 5),
    ("a cap of none", instance({"g": gpu(1, [[10]], max_count=0), "h": gpu(9, [[50]])}), {"h": 1}, 9),
    ("a bucket that must be split", instance(TWO_SIZES, rate=1010), {"a": 1, "b": 50}, 96),
    ("a load that fills machines exactly", instance({"g": gpu(1, [[0.1]])}, rate=0.3), {"g": 3}, 3),
    ("a free type", instance({"g": gpu(0, [[10]]), "h": gpu(9, [[50]])}, rate=50), {"g": 5}, 0),
]


@pytest.mark.parametrize(
    ("data", "gpus", "cost"), [case[1:] for case in RIGHT_ANSWERS], ids=[c[0] for c in RIGHT_ANSWERS]
)
def test_the_right_answer(data: dict[str, Any], gpus: dict[str, int], cost: float) -> None:
    """The cheapest mix and its hourly cost, through the problem file that the instance becomes."""
    plan = answer(data)
    assert plan["status"] == "optimal"
    assert plan["gpus"] == gpus
    assert plan["cost"]["npv"] == pytest.approx(cost, rel=1e-6)


def test_a_bucket_that_no_type_serves_is_infeasible_by_name() -> None:
    """The bucket is named, with what it lacks; its neighbour is not."""
    plan = answer(instance({"small": gpu(1, [[10, 0]])}, [[0.5, 0.5]], 1))
    assert plan["status"] == "infeasible"
    (short,) = [one for one in plan["infeasibility"] if one["kind"] == "demand"]
    assert short["family"] == "demand_coverage"
    assert short["index"][:2] == ["requests", "row 1 column 2"]
    assert (short["short_by"], short["unit"]) == (0.5, "requests/s")


def without(data: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in data.items() if name != key}


def with_tputs(tputs: Any, shares: Any = None) -> dict[str, Any]:
    return instance({"g": gpu(1, tputs)}, shares)


ERRORS = [
    ("slice_factor", "must be a whole number ≥ 1, found 0", instance(slice_factor=0)),
    ("slice_factor", "must be a whole number ≥ 1, found 1.5", instance(slice_factor=1.5)),
    ("slice_factor", 'a number, found "8"', instance(slice_factor="8")),
    ("gpu_info.g.tputs", "shape 3x2 is not 2x3", with_tputs([[1, 100]] * 3, [[0, 0, 0], [1, 0, 0]])),
    ("gpu_info.g.tputs", "shape 1x1 is not 1x2", with_tputs([[1]], [[0.5, 0.5]])),
    ("gpu_info.g.tputs[1]", "row 2 has 1 numbers, not 2", with_tputs([[1, 2], [3]], [[0.5, 0.5], [0, 0]])),
    ("gpu_info.g.tputs[0]", "expected a row of numbers", with_tputs([10])),
    ("gpu_info.g.tputs[0]", "an empty list", with_tputs([[]])),
    ("gpu_info.g.tputs", "expected rows of numbers", with_tputs(10)),
    ("gpu_info.g.tputs[0][0]", "negative throughput: -10", with_tputs([[-10]])),
    ("gpu_info.g.tputs[0][0]", "is not a number", with_tputs([[float("nan")]])),
    ("gpu_info.g.tputs[0][0]", "too large: inf", with_tputs([[float("inf")]])),
    ("gpu_info.g.tputs[0][0]", "a number, found", with_tputs([[True]])),
    ("gpu_info.g.tputs[0][0]", "below 1e-09 requests/s", with_tputs([[1e-12]])),
    ("gpu_info.g.tputs", 'missing key "tputs"', instance({"g": {"cost": 1}})),
    ("gpu_info.g.cost", "negative price: -1", instance({"g": gpu(-1, [[10]])})),
    ("gpu_info.g.cost", "a number, found nothing", instance({"g": gpu(None, [[10]])})),
    ("gpu_info.g.cost", 'missing key "cost"', instance({"g": {"tputs": [[10]]}})),
    ("gpu_info.g.max_count", "must be a whole number ≥ 0, found -1", instance({"g": gpu(1, [[10]], max_count=-1)})),
    ("gpu_info.g.max_count", "must be a whole number ≥ 0, found 1.5", instance({"g": gpu(1, [[10]], max_count=1.5)})),
    ("gpu_info.g.price", 'unknown key "price"', instance({"g": gpu(1, [[10]], price=2)})),
    ("gpu_info.g", "expected an object with cost and tputs", instance({"g": [1, [[10]]]})),
    ("gpu_info", "no GPU types", instance({})),
    ("gpu_info", "expected an object of GPU types", instance([])),
    ("gpu_info", "no GPU type serves any bucket that has requests", with_tputs([[0]])),
    ("workload_distribution", "shares sum to 100, not 1", instance(shares=[[100]])),
    ("workload_distribution[0][1]", "negative share: -1", instance({"g": gpu(1, [[1, 1]])}, [[2, -1]])),
    ("workload_distribution", "an empty distribution", instance(shares=[])),
    ("workload_distribution", "an empty distribution", instance(shares=[[]])),
    ("workload_distribution[1]", "row 2 has 1 numbers", with_tputs([[1, 1], [1, 1]], [[0.5, 0.25], [0.25]])),
    ("total_request_rate", 'missing key "total_request_rate"', without(instance(), "total_request_rate")),
    ("total_request_rate", "negative request rate", instance(rate=-1)),
    ("total_request_rate", "is not a number", instance(rate=float("nan"))),
    ("total_request_rate", "too large", instance(rate=10**400)),
    ("budget", 'unknown key "budget"', instance(budget=3)),
]


@pytest.mark.parametrize(("path", "words", "data"), ERRORS, ids=[f"{case[0]}: {case[1]}" for case in ERRORS])
def test_an_error_names_file_field_and_finding(path: str, words: str, data: dict[str, Any]) -> None:
    """File, line and column, the path in the data, what was found; one error for one mistake."""
    with pytest.raises(ProblemFileError) as caught:
        read_melange(json.dumps(data), "mix.json")
    (finding,) = caught.value.findings
    assert (finding.file, finding.path, finding.line) == ("mix.json", path, 1)
    assert words in finding.message
    assert finding.column is not None


ADVICE = {
    "transposed": (with_tputs([[1, 100]] * 3, [[0, 0, 0], [1, 0, 0]]), "rows and columns are exchanged"),
    "percent": (instance(shares=[[100]]), "write shares such as 0.25"),
    "misspelt": (instance(slice_facto=1), 'did you mean "slice_factor"?'),
    "sentinel": (with_tputs([[1e-12]]), "write 0 if this type cannot serve the bucket"),
    "missing": (without(instance(), "total_request_rate"), "write the requests per second of all buckets together"),
}


@pytest.mark.parametrize("case", ADVICE)
def test_an_error_says_what_to_write(case: str) -> None:
    """The hint is what to do about it."""
    data, advice = ADVICE[case]
    with pytest.raises(ProblemFileError) as caught:
        read_melange(json.dumps(data), "mix.json")
    assert advice in caught.value.findings[0].hint


def test_all_mistakes_are_told_at_once_in_the_order_of_the_file() -> None:
    """Price, throughput, share and rate of one file."""
    text = json.dumps(instance({"g": gpu(-1, [[-2]]), "h": gpu(1, [["x"]])}, [[-1]], -3), indent=1)
    with pytest.raises(ProblemFileError) as caught:
        read_melange(text, "mix.json")
    assert [finding.path for finding in caught.value.findings] == [
        "gpu_info.g.cost",
        "gpu_info.g.tputs[0][0]",
        "gpu_info.h.tputs[0][0]",
        "workload_distribution[0][0]",
        "total_request_rate",
    ]
    lines = [finding.line for finding in caught.value.findings]
    assert lines == sorted(lines)
    assert len(set(lines)) == 5


def test_a_key_that_comes_twice_is_an_error() -> None:
    """JSON readers keep the last of two equal keys in silence."""
    text = json.dumps(instance()).replace('"g": {', '"g": {"cost": 9, "tputs": [[10]]}, "g": {')
    with pytest.raises(ProblemFileError, match='the key "g" comes twice'):
        read_melange(text, "mix.json")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not JSON: expecting value"),
        ('{"gpu_info": }', "mix.json:1:14: error: not JSON"),
        ("[1, 2]", "expected an object with gpu_info"),
        ("[" * 100_000, "nested too deeply"),
        ('{"total_request_rate": ' + "1" * 5000 + "}", "not readable as JSON"),
    ],
    ids=["empty", "syntax", "list", "nesting", "digits"],
)
def test_what_is_no_instance_is_refused(text: str, words: str) -> None:
    """Text that is not JSON, or another JSON file."""
    with pytest.raises(ProblemFileError, match=words):
        read_melange(text, "mix.json")
