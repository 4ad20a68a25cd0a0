"""The catalog: GPUs, models, offers and servers, each figure with its source and date."""
