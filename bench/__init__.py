"""Speed, measured as ratios within one run: MemPlane beside its own raw parts on the same stores."""
