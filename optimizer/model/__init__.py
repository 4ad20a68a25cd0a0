"""The planning model: time grid, options, instance, and the rows and cost lines of the MILP."""
