"""The estimator held against measurements: rows of a CSV file are predicted, scored and summarised."""
