"""Problem files: what a buyer may write, and how it is read."""
