"""Units: the only conversion factors of the project, and the suffixes that numeric names may end in.

Conventions (docs/model.md): 1 year = 8,760 h, 1 month = 730 h, 1 day = 24 h; GB = 10^9 bytes, GiB = 2^30 bytes;
TFLOP = 10^12 FLOP; peak rates are dense.
"""

HOURS_PER_DAY = 24
HOURS_PER_MONTH = 730
HOURS_PER_YEAR = 8_760
MONTHS_PER_YEAR = 12
SECONDS_PER_HOUR = 3_600
MS_PER_S = 1_000

GRAMS_PER_TONNE = 10**6
BYTES_PER_KB = 10**3
BYTES_PER_MB = 10**6
BYTES_PER_GB = 10**9
BYTES_PER_TB = 10**12
BYTES_PER_MIB = 2**20
BYTES_PER_GIB = 2**30
BITS_PER_BYTE = 8

FLOP_PER_TFLOP = 10**12

UNIT_SUFFIXES = (
    "_bytes", "_gb", "_gib", "_tb", "_gb_per_s", "_bytes_per_s", "_bytes_per_token",
    "_flop", "_flop_per_s", "_tflop_per_s", "_tops",
    "_s", "_ms", "_us", "_seconds", "_hour", "_hours", "_month", "_months", "_years", "_per_year", "_per_month",
    "_per_s", "_per_hour", "_per_day",
    "_w", "_kw", "_kwh", "_usd", "_usd_per_hour", "_usd_per_gpu_hour", "_usd_per_node_hour", "_usd_per_kwh",
    "_usd_per_kw_month", "_usd_per_month", "_fraction", "_tokens", "_g_per_kwh",
)  # fmt: skip
"""Suffixes a numeric field may end in; counts (`nodes`, `gpus_per_node`, …) need none."""
