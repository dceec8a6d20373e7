"""One file per cloud: ``fetch`` (effect) and ``parse`` (pure)."""
