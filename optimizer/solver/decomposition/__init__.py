"""Plans too large for one model: prices for nodes, a least-cost cell at those prices, and a fleet that answers for all.

See docs/solver.md, "Large problems". `run.decompose` is the entry.
"""
