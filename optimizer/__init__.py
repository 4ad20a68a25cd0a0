"""gpumix: which GPUs, how many, bought or rented, for how long, at what cost, and why."""

__version__ = "0.1.0"
