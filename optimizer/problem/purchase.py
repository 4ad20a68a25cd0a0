"""Ways of having a node."""

from typing import Literal

PurchaseOption = Literal["owned", "reserved", "committed-use", "on-demand", "spot"]
PURCHASE_OPTIONS: tuple[PurchaseOption, ...] = ("owned", "reserved", "committed-use", "on-demand", "spot")
USE_BILLED: tuple[PurchaseOption, ...] = ("on-demand", "spot")
"""Paid by the hour rented; there is no order."""
BillingStep = Literal["second", "minute", "10 minutes", "hour", "day", "week", "month", "year"]
