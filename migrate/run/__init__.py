"""Lock, journal, effects, engine: what carries out a plan."""
