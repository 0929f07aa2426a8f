"""A story that shows MemPlane once, end to end, with the conversation of a company of our own making."""
