"""Values that carry a unit: what a buyer may write (`5 days`, `8 %`, `0.12 USD/kWh`) and the one number it becomes.

Every annotated type names the unit of the number it yields. A text with a unit is always accepted; a bare number only
where the unit is beyond doubt (a fraction, a price in the problem's currency, a count). Validation with the context
`{"normalised": True}` reads a problem that was dumped: there a bare number is in the canonical unit.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from math import inf, isfinite
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, WithJsonSchema

from optimizer.units import (
    BYTES_PER_GB,
    BYTES_PER_GIB,
    BYTES_PER_KB,
    BYTES_PER_MB,
    BYTES_PER_MIB,
    BYTES_PER_TB,
    HOURS_PER_DAY,
    HOURS_PER_MONTH,
    HOURS_PER_YEAR,
    MS_PER_S,
    SECONDS_PER_HOUR,
)


class Model(BaseModel):
    """Base of all input schemas: frozen, unknown keys refused, no NaN or infinity, no silent coercion."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, strict=True, defer_build=True)


_DATE = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}")
_CURRENCY_CODE = re.compile(r"(?:[A-Z]{3})?")
_DIGITS = r"[0-9]+(?:_[0-9]+)*"
_NUMBER = re.compile(rf"^\s*([-+]?(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})(?:[eE][-+]?[0-9]+)?)\s*(.*?)\s*$")


def split_quantity(text: str) -> tuple[float, str]:
    """Split `"265_000 USD/h"` into `(265000.0, "USD/h")`.

    Raises
    ------
    ValueError
        If the text does not start with a plain number (a thousands comma is refused: it reads as a decimal comma
        elsewhere).
    """
    match = _NUMBER.match(text)
    if match is None or match[2].startswith(","):
        msg = (
            f'expected a number with a unit, found "{text}"; write digits, with _ between thousands and . for decimals'
        )
        raise ValueError(msg)
    number = float(match[1].replace("_", ""))
    if not isfinite(number):
        msg = f'expected a finite number, found "{text}"'
        raise ValueError(msg)
    return number, match[2]


@dataclass(frozen=True, slots=True)
class Unit:
    """A kind of quantity: the factor of every accepted spelling, and what a number without a unit means (or None)."""

    kind: str
    factors: Mapping[str, float]
    example: str
    bare: float | None = None

    def parse(self, value: object) -> float:
        """Return `value` in the canonical unit (the one whose factor is 1)."""
        if isinstance(value, bool) or value is None or not isinstance(value, int | float | str):
            msg = f"expected {self.kind}, found {_shown(value)}; write e.g. {self.example}"
            raise ValueError(msg)
        number, unit = (_finite(value), "") if not isinstance(value, str) else split_quantity(value)
        if not unit:
            if self.bare is None:
                msg = f"expected {self.kind} with its unit, found {_shown(value)}; write e.g. {self.example}"
                raise ValueError(msg)
            return number * self.bare
        factor = self.factors.get(unit) or self.factors.get(unit.lower())
        if factor is None and _DATE.fullmatch(str(value).strip()):
            msg = f"expected {self.kind} (counted from the start), found the date {value}; write e.g. {self.example}"
            raise ValueError(msg)
        if factor is None:
            msg = f'unknown unit "{unit}" for {self.kind}; write e.g. {self.example} ({", ".join(self.factors)})'
            raise ValueError(msg)
        return number * factor


def _finite(value: float) -> float:
    try:
        number = float(value)
    except OverflowError:
        number = inf
    if not isfinite(number):
        msg = f"expected a finite number, found {value if isinstance(value, float) else 'one beyond 1e308'}"
        raise ValueError(msg)
    return number


def _shown(value: object) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, bool):
        return f"the truth value {str(value).lower()}"
    return {dict: "a mapping", list: "a list", type(None): "nothing"}.get(type(value), repr(value))


_HOUR_FACTORS = {
    "h": 1.0, "hour": 1.0, "hours": 1.0,
    "min": 1 / 60, "minute": 1 / 60, "minutes": 1 / 60,
    "s": 1 / SECONDS_PER_HOUR, "second": 1 / SECONDS_PER_HOUR, "seconds": 1 / SECONDS_PER_HOUR,
    "d": HOURS_PER_DAY, "day": HOURS_PER_DAY, "days": HOURS_PER_DAY,
    "week": 7 * HOURS_PER_DAY, "weeks": 7 * HOURS_PER_DAY,
    "month": HOURS_PER_MONTH, "months": HOURS_PER_MONTH,
    "year": HOURS_PER_YEAR, "years": HOURS_PER_YEAR,
}  # fmt: skip
HOURS = Unit("a duration", _HOUR_FACTORS, '"5 days"')
MONTHS = Unit(
    "a duration",
    {"month": 1.0, "months": 1.0, "year": 12.0, "years": 12.0}
    | {k: v / HOURS_PER_MONTH for k, v in _HOUR_FACTORS.items() if not k.startswith(("month", "year"))},
    '"4 months"',
)
MONTHS_OR_NUMBER = replace(MONTHS, example='12 or "3 years"', bare=1.0)
MILLISECONDS = Unit("a time", {"ms": 1.0, "s": MS_PER_S, "us": 1e-3, "µs": 1e-3}, '"800 ms"')
FRACTION = Unit("a share", {"%": 0.01}, '"8 %" or 0.08', bare=1.0)
FACTOR = Unit("a factor", {"%": 0.01}, "1.2", bare=1.0)
FRACTION_PER_YEAR = Unit("a share per year", {"%": 0.01, "%/year": 0.01, "% per year": 0.01}, '"5 %/year"', bare=1.0)
KILOWATTS = Unit("a power", {"kW": 1.0, "kw": 1.0, "W": 1e-3, "w": 1e-3, "MW": 1e3}, '"10.2 kW"')
GRAMS_PER_KWH = Unit(
    "a carbon intensity", {"g/kWh": 1.0, "gCO2e/kWh": 1.0, "kg/MWh": 1.0, "kg/kWh": 1e3, "t/MWh": 1e3}, '"320 g/kWh"'
)
TONNES = Unit("a mass of CO2e", {"t": 1.0, "tCO2e": 1.0, "kg": 1e-3, "kt": 1e3}, '"40 t"')
BYTES = Unit(
    "a size",
    {"B": 1.0, "kB": BYTES_PER_KB, "KB": BYTES_PER_KB, "MB": BYTES_PER_MB, "GB": BYTES_PER_GB, "TB": BYTES_PER_TB,
     "KiB": 2.0**10, "MiB": BYTES_PER_MIB, "GiB": BYTES_PER_GIB, "TiB": 2.0**40},
    '"80 GiB"',
)  # fmt: skip
TFLOP_PER_S = Unit(
    "a compute rate", {"TFLOP/s": 1.0, "TFLOPS": 1.0, "PFLOP/s": 1e3, "GFLOP/s": 1e-3, "TOPS": 1.0}, '"312 TFLOP/s"'
)
BYTES_PER_S = Unit(
    "a bandwidth",
    {"GB/s": BYTES_PER_GB, "TB/s": BYTES_PER_TB, "MB/s": BYTES_PER_MB, "GiB/s": BYTES_PER_GIB},
    '"2 TB/s"',
)
GROWTH_PER_MONTH = Unit("a growth", {"%/month": 0.01, "% per month": 0.01, "%": 0.01}, '"4 %/month"')


def _normalised(value: object, info: ValidationInfo) -> bool:
    """Whether `value` is a number in the canonical unit, from a dumped problem."""
    return bool(info.context and info.context.get("normalised")) and type(value) in (int, float)


def _parser(unit: Unit) -> Callable[[object, ValidationInfo], float]:
    def parse(value: object, info: ValidationInfo) -> float:
        return _finite(value) if _normalised(value, info) else unit.parse(value)  # type: ignore[arg-type]

    return parse


def _growth_per_month(value: object, info: ValidationInfo) -> float:
    if _normalised(value, info):
        return _finite(value)  # type: ignore[arg-type]
    if isinstance(value, str) and value.rstrip().endswith(("/year", "per year")):
        yearly = FRACTION_PER_YEAR.parse(value)
        return float((1 + yearly) ** (1 / 12) - 1)
    if isinstance(value, str) and value.rstrip().endswith("%"):
        msg = f'expected a growth with its period, found "{value}"; write e.g. "{value.strip()}/month"'
        raise ValueError(msg)
    return GROWTH_PER_MONTH.parse(value)


DEFAULT_CURRENCY = "USD"


@dataclass(frozen=True, slots=True)
class Currencies:
    """The problem's currency and what one unit of each other currency is worth in it."""

    currency: str = DEFAULT_CURRENCY
    rates: Mapping[str, float] = field(default_factory=dict)

    def factor(self, code: str) -> float:
        """Worth of one `code` in the problem's currency.

        Raises
        ------
        ValueError
            If the file gives no rate for `code`.
        """
        if code == self.currency:
            return 1.0
        if code in self.rates:
            return self.rates[code]
        msg = (
            f"a price in {code} needs a dated rate; add exchange_rates: "
            f"{{{code}: {{rate: <{self.currency} per {code}>, date: <YYYY-MM-DD>}}}} or write it in {self.currency}"
        )
        raise ValueError(msg)


def _money(suffixes: Mapping[str, float], example: str) -> Callable[[object, ValidationInfo], float]:
    """Parser of an amount of money per something; the currency comes from the validation context."""

    def parse(value: object, info: ValidationInfo) -> float:
        currencies = (info.context or {}).get("currencies", Currencies())
        if isinstance(value, int | float) and not isinstance(value, bool):
            return _finite(value)
        if not isinstance(value, str):
            msg = f"expected an amount of money, found {_shown(value)}; write e.g. {example}"
            raise ValueError(msg)  # noqa: TRY004  pydantic turns ValueErrors into findings
        number, unit = split_quantity(value)
        code, _, per = (part.strip() for part in unit.partition("/"))
        if per not in suffixes or not _CURRENCY_CODE.fullmatch(code):
            msg = f'unknown unit "{unit}"; write e.g. {example}'
            raise ValueError(msg)
        return number * (currencies.factor(code) if code else 1.0) * suffixes[per]

    return parse


def _text_or_number(kind: str, example: str) -> WithJsonSchema:
    return WithJsonSchema({"type": ["number", "string"], "description": f"{kind}, e.g. {example}"})


LONGEST_HORIZON_MONTHS = 600
MOST_MONTHS = 1200
MOST = 1e60
"""No number is larger, whatever its unit; what the solver sees are shares of it."""
MOST_MONEY = 1e15
MOST_COUNT = 10**9
MOST_PER_S = 1e9
LEAST_MEASURED = 1e-9
_PER_HOUR = {"h": 1.0, "hour": 1.0, "month": 1 / HOURS_PER_MONTH, "year": 1 / HOURS_PER_YEAR, "day": 1 / HOURS_PER_DAY}
_PER_MONTH = {"month": 1.0, "year": 1 / 12, "h": float(HOURS_PER_MONTH)}

Fraction = Annotated[float, BeforeValidator(_parser(FRACTION)), Field(ge=0, le=1), _text_or_number("a share", "8 %")]
FractionPerYear = Annotated[
    float,
    BeforeValidator(_parser(FRACTION_PER_YEAR)),
    Field(ge=0, le=1),
    _text_or_number("a share per year", "5 %/year"),
]
ChangePerYear = Annotated[
    float,
    BeforeValidator(_parser(replace(FRACTION_PER_YEAR, kind="a change per year"))),
    Field(ge=-0.9, le=1),
    _text_or_number("a change per year", "3 %/year"),
]
ShareAboveZero = Annotated[
    float, BeforeValidator(_parser(FRACTION)), Field(gt=0, le=1), _text_or_number("a share", "95 %")
]
PowerUsage = Annotated[float, BeforeValidator(_parser(FACTOR)), Field(ge=1, le=3), _text_or_number("a factor", "1.2")]
Hours = Annotated[
    float,
    BeforeValidator(_parser(HOURS)),
    Field(ge=0, le=MOST_MONTHS * HOURS_PER_MONTH),
    _text_or_number("a duration", "5 days"),
]
Months = Annotated[
    float, BeforeValidator(_parser(MONTHS)), Field(ge=0, le=MOST_MONTHS), _text_or_number("a duration", "4 months")
]
HorizonMonths = Annotated[
    float,
    BeforeValidator(_parser(MONTHS_OR_NUMBER)),
    Field(ge=0, le=LONGEST_HORIZON_MONTHS),
    _text_or_number("months or a duration", '12 or "3 years"'),
]
HorizonLength = Annotated[
    float,
    BeforeValidator(_parser(MONTHS_OR_NUMBER)),
    Field(ge=1 / HOURS_PER_MONTH, le=LONGEST_HORIZON_MONTHS),
    _text_or_number("months or a duration", '12 or "3 years"'),
]
Milliseconds = Annotated[
    float, BeforeValidator(_parser(MILLISECONDS)), Field(gt=0, le=1e12), _text_or_number("a time", "800 ms")
]
Kilowatts = Annotated[
    float, BeforeValidator(_parser(KILOWATTS)), Field(ge=0, le=MOST_COUNT), _text_or_number("a power", "10.2 kW")
]
_G_PER_KWH = _text_or_number("a carbon intensity", "320 g/kWh")
GramsPerKwh = Annotated[float, BeforeValidator(_parser(GRAMS_PER_KWH)), Field(ge=0, le=10_000), _G_PER_KWH]
_CO2E = _text_or_number("a mass of CO2e", "40 t")
Tonnes = Annotated[float, BeforeValidator(_parser(TONNES)), Field(ge=0, le=1e12), _CO2E]
Bytes = Annotated[float, BeforeValidator(_parser(BYTES)), Field(gt=0, le=MOST), _text_or_number("a size", "80 GiB")]
TflopPerS = Annotated[
    float, BeforeValidator(_parser(TFLOP_PER_S)), Field(gt=0, le=1e12), _text_or_number("a compute rate", "312 TFLOP/s")
]
BytesPerS = Annotated[
    float, BeforeValidator(_parser(BYTES_PER_S)), Field(gt=0, le=1e21), _text_or_number("a bandwidth", "2 TB/s")
]
GrowthPerMonth = Annotated[
    float, BeforeValidator(_growth_per_month), Field(gt=-1, le=10), _text_or_number("a growth", "4 %/month")
]
Money = Annotated[
    float,
    BeforeValidator(_money({"": 1.0}, "265_000 USD")),
    Field(ge=0, le=MOST_MONEY),
    _text_or_number("money", "265_000 USD"),
]
MoneyPerHour = Annotated[
    float,
    BeforeValidator(_money({"": 1.0} | _PER_HOUR, "21.6 USD/h")),
    Field(ge=0, le=MOST_MONEY),
    _text_or_number("money", "21.6 USD/h"),
]
MoneyPerMonth = Annotated[
    float,
    BeforeValidator(_money({"": 1.0} | _PER_MONTH, "180_000 USD/month")),
    Field(ge=0, le=MOST_MONEY),
    _text_or_number("money", "180_000 USD/month"),
]
MoneyPerKwh = Annotated[
    float,
    BeforeValidator(_money({"": 1.0, "kWh": 1.0, "MWh": 1e-3}, "0.11 USD/kWh")),
    Field(ge=0, le=MOST_MONEY),
    _text_or_number("money", "0.11 USD/kWh"),
]
MoneyPerGb = Annotated[
    float,
    BeforeValidator(_money({"": 1.0, "GB": 1.0, "GB/month": 1.0, "TB": 1e-3, "TB/month": 1e-3}, "0.08 USD/GB")),
    Field(ge=0, le=MOST_MONEY),
    _text_or_number("money", "0.08 USD/GB"),
]
_PER_T, _T = {"": 1.0, "t": 1.0, "tCO2e": 1.0}, _text_or_number("money", "80 USD/t")
MoneyPerTonne = Annotated[float, BeforeValidator(_money(_PER_T, "80 USD/t")), Field(ge=0, le=MOST_MONEY), _T]
MoneyPerKwMonth = Annotated[
    float,
    BeforeValidator(_money({"": 1.0, "kW/month": 1.0, "kW-month": 1.0}, "140 USD/kW/month")),
    Field(ge=0, le=MOST_MONEY),
    _text_or_number("money", "140 USD/kW/month"),
]


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        msg = f"expected a number, found {_shown(value)}"
        raise ValueError(msg)  # noqa: TRY004  pydantic turns ValueErrors into findings
    return _finite(value)


def _whole(value: object) -> int:
    number = _number(value)
    if number != int(number):
        msg = f"expected a whole number, found {value!r}"
        raise ValueError(msg)
    return int(number)


def _date(value: object) -> date:
    if isinstance(value, date):
        return value
    if isinstance(value, str):
        try:
            return date.fromisoformat(value)
        except ValueError:
            pass
    msg = f"expected a date, found {_shown(value)}; write e.g. 2026-12-01"
    raise ValueError(msg)


def _start_hours(value: object, info: ValidationInfo) -> float:
    """`month 6` (from the start of the horizon), a duration with its unit, or 0."""
    if _normalised(value, info):
        return _finite(value)  # type: ignore[arg-type]
    match = re.fullmatch(r"month\s+([0-9]+(?:\.[0-9]+)?)", value.strip()) if isinstance(value, str) else None
    if match:
        return float(match[1]) * HOURS_PER_MONTH
    return 0.0 if value == 0 and not isinstance(value, bool) else HOURS.parse(value)


StartHours = Annotated[
    float,
    BeforeValidator(_start_hours),
    Field(ge=0, le=MOST_MONTHS * HOURS_PER_MONTH),
    _text_or_number("a start", "month 6"),
]
Headroom = Annotated[float, BeforeValidator(_parser(FRACTION)), Field(ge=0, le=10), _text_or_number("a share", "33 %")]
Positive = Annotated[float, BeforeValidator(_number), Field(gt=0, le=MOST)]
NonNegative = Annotated[float, BeforeValidator(_number), Field(ge=0, le=MOST)]
PerSecond = Annotated[float, BeforeValidator(_number), Field(ge=0, le=MOST_PER_S)]
PerDay = Annotated[float, BeforeValidator(_number), Field(ge=0, le=MOST_PER_S * 24 * SECONDS_PER_HOUR)]
Multiplier = Annotated[float, BeforeValidator(_number), Field(ge=0, le=1e6)]
Amount = Annotated[float, BeforeValidator(_number), Field(gt=0, le=1e20)]
Measured = Annotated[float, BeforeValidator(_number), Field(ge=LEAST_MEASURED, le=1e20)]
WorthOfMoney = Annotated[float, BeforeValidator(_number), Field(ge=1e-9, le=1e9)]
Count = Annotated[int, BeforeValidator(_whole), Field(ge=1, le=MOST_COUNT)]
CountOrZero = Annotated[int, BeforeValidator(_whole), Field(ge=0, le=MOST_COUNT)]
Day = Annotated[date, BeforeValidator(_date)]
