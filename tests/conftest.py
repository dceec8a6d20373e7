"""What all tests start from."""

from __future__ import annotations

import signal

# A suite that is started in the background may have inherited "ignore Ctrl-C", and so would all
# that it starts; the tests that send one expect a terminal's behaviour.
signal.signal(signal.SIGINT, signal.default_int_handler)
