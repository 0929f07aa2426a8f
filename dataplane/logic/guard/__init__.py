"""Attacks on a memory: how suspect a text is, and whom to believe when hits disagree; pure."""
