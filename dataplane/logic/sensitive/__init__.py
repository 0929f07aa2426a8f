"""Sensitive data in texts: found, and masked. `detect` finds, `redact` masks what a policy wants masked."""
