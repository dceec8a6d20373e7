"""Tables and other things that people look at."""
