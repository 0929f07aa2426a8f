"""The policy as a value: its model, its codec, and what it says for a namespace and a principal."""
