"""Measures how well searches find what questions ask for, on labelled data."""
