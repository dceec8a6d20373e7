"""The outside half of measuring: launch, sample the machine, collect."""
