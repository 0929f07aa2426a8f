"""Real processes under load and faults, and a checker of what the clients saw; see README.md beside this file."""
