"""Answers as text: tables, Markdown, CSV, YAML and JSON. All rounding happens here."""
