"""Constraint families by room: services, capacity, jobs, limits. `constraints.FAMILIES` lists them."""
