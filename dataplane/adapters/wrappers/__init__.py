"""Ports around ports: they add behaviour and keep the promise."""
