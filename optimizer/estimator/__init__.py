"""What a workload needs and what a GPU yields: the estimator, handed workloads and catalog rows, never the problem."""
