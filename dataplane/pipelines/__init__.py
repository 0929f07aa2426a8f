"""The order of steps of each verb, over ports and logic."""
