"""Problem files from the files of other planners."""
