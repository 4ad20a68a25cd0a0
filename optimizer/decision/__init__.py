"""Decisions between plans: variants of one problem side by side, and where one of them overtakes another."""
