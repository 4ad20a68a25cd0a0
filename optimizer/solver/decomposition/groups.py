"""Groups of cells that stand for their mean.

The mean of any plan over a group is a plan of the group at the same cost, so a bound on groups is one on cells. It is
as good as prices within a group are alike.
"""

from collections.abc import Sequence

import numpy as np

from optimizer.solver.matrix import Floats, Indices


def group_cells(apart: Sequence[object], features: Floats, weights: Floats, count: int) -> Indices:
    """Row of every cell: cells with different `apart` never share one; the rest are split where features differ most.

    `features`: cells × anything, in one unit. Every part is split along its widest feature until there are `count`.
    """
    parts = [np.flatnonzero([a == key for a in apart]) for key in dict.fromkeys(apart)]
    spreads = [_spread(features[p], weights[p]) for p in parts]
    while len(parts) < count:
        widest = max(range(len(parts)), key=lambda i: spreads[i][0])
        spread, feature = spreads[widest]
        if spread <= 1e-12:
            break
        cells = parts[widest]
        values = features[cells, feature]
        high = values > np.average(values, weights=weights[cells])
        parts[widest], new = cells[~high], cells[high]
        parts.append(new)
        spreads[widest] = _spread(features[parts[widest]], weights[parts[widest]])
        spreads.append(_spread(features[new], weights[new]))
    groups = np.zeros(len(features), dtype=np.int64)
    for row, cells in enumerate(parts):
        groups[cells] = row
    return groups


def _spread(features: Floats, weights: Floats) -> tuple[float, int]:
    """Weighted squares of the widest feature about its mean, and which it is."""
    if len(features) < 2:
        return 0.0, 0
    squares = (weights[:, None] * (features - np.average(features, axis=0, weights=weights)) ** 2).sum(axis=0)
    return float(np.max(squares)), int(np.argmax(squares))


def added_up(values: Floats, groups: Indices) -> Floats:
    """Rows added up by group: `groups` is the group of every row."""
    total = np.zeros((int(np.max(groups)) + 1, *values.shape[1:]))
    np.add.at(total, groups, values)
    return total
