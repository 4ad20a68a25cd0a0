import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimizer.estimator.workloads import RequestClass, Service, Traffic
from optimizer.problem.profiles import HOUR_WEIGHTS, base_rate, hourly_profile, named_profiles, reachable_peaks


def mean(values):
    return math.fsum(weight * value for weight, value in zip(HOUR_WEIGHTS, values, strict=True))


@pytest.mark.parametrize("name", ["flat", "office-hours", "global"])
def test_named_profiles_have_mean_one_and_few_levels(name):
    """A built-in shape is 48 hours of mean 1, with at most 8 levels so that its slices can be merged."""
    profile = hourly_profile(Traffic(profile=name))
    assert len(profile) == 48
    assert mean(profile) == pytest.approx(1, abs=1e-12)
    assert len(set(profile)) <= 8


def test_weekdays_count_five_and_weekends_two():
    """The mean weighs a weekday hour 5 and a weekend hour 2."""
    profile = hourly_profile(Traffic(profile=[1.0] * 24 + [0.0] * 24))
    assert profile[0] == pytest.approx(7 / 5)
    assert profile[24] == 0


def test_24_numbers_stand_for_every_day():
    """A day of numbers is used on weekdays and weekends."""
    profile = hourly_profile(Traffic(profile=[float(hour) for hour in range(24)]))
    assert profile[:24] == profile[24:]
    assert max(profile) == pytest.approx(2.0)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.floats(0, 1e6), min_size=24, max_size=24).filter(lambda day: max(day) > 1e-3), st.floats(0, 1))
def test_rescaling_reaches_the_asked_peak_and_keeps_the_shape(day, position):
    """`peak_to_mean` changes how pronounced a shape is: mean 1, order of hours and zeros stay, the peak is as asked."""
    shape = hourly_profile(Traffic(profile=day))
    low, high = reachable_peaks(shape)
    asked = low + (0.02 + 0.9 * position) * (high - low)
    scaled = hourly_profile(Traffic(profile=day, peak_to_mean=asked))
    assert max(scaled) == pytest.approx(asked, rel=1e-6)
    assert mean(scaled) == pytest.approx(1, abs=1e-9)
    assert min(scaled) >= 0
    for one, other, scaled_one, scaled_other in zip(shape, shape[1:], scaled, scaled[1:], strict=False):
        assert (one <= other) == (scaled_one <= scaled_other) or math.isclose(scaled_one, scaled_other, rel_tol=1e-9)


def test_the_peak_that_a_shape_has_changes_nothing():
    """Asking for the peak that is there returns the very same numbers."""
    shape = hourly_profile(Traffic(profile="office-hours"))
    assert hourly_profile(Traffic(profile="office-hours", peak_to_mean=max(shape))) == shape


@pytest.mark.parametrize(
    ("traffic", "message"),
    [
        ({"profile": "flat", "peak_to_mean": 3.0}, "out of reach of this profile"),
        ({"profile": "office-hours", "peak_to_mean": 6.0}, "1 to 4.8"),
        ({"profile": "office-hours", "peak_to_mean": 0.5}, "out of reach"),
        ({"profile": "nights"}, "unknown profile"),
        ({"profile": [1.0] * 25}, "found 25"),
        ({"profile": [0.0] * 24}, "zeros only"),
    ],
)
def test_profiles_that_cannot_be_used_say_why(traffic, message):
    """An unknown name, a wrong length, no traffic at all or an impossible peak are errors with the way out."""
    with pytest.raises(ValueError, match=message):
        hourly_profile(Traffic(**traffic))


def service(classes=None, **traffic):
    return Service(name="s", kind="service", traffic=Traffic(**traffic), classes=classes)


def test_base_rate_of_the_three_ways_to_say_it():
    """A daily total, a mean and a peak give the same base rate when they mean the same traffic."""
    peak = max(hourly_profile(Traffic(profile="office-hours")))
    assert base_rate(service(requests_per_day=86_400.0, profile="office-hours")) == pytest.approx(1)
    assert base_rate(service(mean_requests_per_s=1.0, profile="office-hours")) == pytest.approx(1)
    assert base_rate(service(peak_requests_per_s=peak, profile="office-hours")) == pytest.approx(1)


def test_base_rate_with_slices_of_the_problems_own():
    """With own slices, base × multiplier is the rate in a slice: the mean is the weighted one, the peak the largest."""
    hours = {"day": 0.5, "night": 0.5}
    by_slice = {"day": 3.0, "night": 1.0}
    assert base_rate(service(mean_requests_per_s=4.0, by_slice=by_slice), hours) == pytest.approx(2)
    assert base_rate(service(peak_requests_per_s=6.0, by_slice=by_slice), hours) == pytest.approx(2)
    rates = [RequestClass(name="a", requests_per_s=1.5), RequestClass(name="b", requests_per_s=0.5)]
    assert base_rate(service(classes=rates, by_slice=by_slice), hours) == pytest.approx(2)


def test_the_built_in_shapes_are_those_that_the_manual_names():
    """flat, office-hours and global: no more, no fewer."""
    assert set(named_profiles()) == {"flat", "office-hours", "global"}
