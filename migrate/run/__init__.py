"""Lock, journal, effects, engine: the only part that acts."""
