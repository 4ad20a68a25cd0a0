"""Explanations of a plan file: pure functions from its document to trees of figures with their sources."""
