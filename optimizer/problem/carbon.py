"""Emissions of rented nodes, as a schema."""

from fnmatch import fnmatchcase
from typing import Annotated

from pydantic import Field

from optimizer.quantities import GramsPerKwh, Model, Multiplier, PowerUsage


class Carbon(Model):
    """Emissions of rented nodes: power × PUE × paid hours × CO2e per kWh, an estimate.

    Power is the quote's, or else the GPUs' TDP × `host_factor`, and is supposed to be drawn in every paid hour. Owned
    nodes emit by the kWh that they are planned to use (`site.carbon`).
    """

    regions: dict[str, GramsPerKwh] = Field(default_factory=dict)
    """CO2e per kWh by region (a name pattern: eu-*); of several that match, the last one counts."""
    pue: PowerUsage = 1.54
    """Of the data centres of rented nodes; the average of the industry by default (Uptime Institute survey, 2025)."""
    host_factor: Annotated[Multiplier, Field(ge=1, le=10)] = 1.8
    """Power of a rented node ÷ TDP of its GPUs; by default that of a DGX H100 (10.2 kW ÷ 8 × 700 W; NVIDIA data sheet),
    by nameplate, so rather too high than too low."""

    def of_region(self, region: str) -> float | None:
        """CO2e per kWh of a region; None if no pattern matches it."""
        found = [grams for pattern, grams in self.regions.items() if fnmatchcase(region.lower(), pattern.lower())]
        return found[-1] if found else None
