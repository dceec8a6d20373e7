"""Pure thought: values in, values out. No clock, file, network or log; randomness from a seed."""
