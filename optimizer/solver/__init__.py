"""Everything that touches a solver: the one adapter to PuLP and HiGHS, and the diagnosis of infeasible problems."""
