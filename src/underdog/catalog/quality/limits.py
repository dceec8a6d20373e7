"""The thresholds of the quality rules, all in one place, each with its reason."""

from __future__ import annotations

# Between providers and regions the price of one accelerator differs by a factor of five at most in
# the bundled catalog (an A100 from 1.1 to 6.2 USD/h, an L4 from 0.7 to 3.4 with a large host). What
# is ten times off was read wrong: a bid floor, another unit, a host without its accelerator.
PRICE_FACTOR = 10
# Spot is sold at down to a tenth of the on-demand price (AWS and Azure name 90 % off as the most,
# Google 91 %), so where no more is known a tenth of on-demand is what spot is held against.
SPOT_SHARE = 0.1
# Three years paid in advance take 62 to 72 % off.
RESERVED_SHARE = 0.25

# A machine with n accelerators costs from 0.8 n to 1.6 n times one with a single one in the bundled
# catalog. One with four or more for less than 1.5 singles has the price of one accelerator; below
# four a spot market can do the same.
SINGLES, SINGLES_FROM = 1.5, 4

# What a machine costs above a plain one of its size is the accelerator: in the bundled catalog 16 %
# of what that usually costs, or more, wherever the whole costs under 40 % of it.
ACCELERATOR_SHARE, ACCELERATOR_PRICE = 0.1, 0.4

# The licence of Windows on Azure, USD per vCPU and hour in every region ("Windows Virtual Machines
# pricing"). A price that is above the others of its family by just that is one with Windows.
WINDOWS_PER_VCPU, WINDOWS_TOLERANCE = 0.046, 0.0003
# Within a family of Azure a vCPU costs the same, but for rounding; where less than the share of the
# prices are so, with or without the licence, it is chance.
RATE_TOLERANCE, RATE_SHARE = 0.02, 0.8

# A larger machine that is cheaper by less than this: a rounding, or a list that was changed between
# two days.
CHEAPER = 0.05
# The largest family has 26 sizes in one place in the bundled catalog. A group of more than this is
# a market of single machines, whose prices follow who offers them.
MOST_SIZES = 200

# The memory of one accelerator in GB, in GiB and as its driver tells it differs by up to 14 %: of
# 16 GB, which are 14.9 GiB, the driver shows 14.6 with ECC.
MEMORY_TOLERANCE = 0.15
# What is usable is never above the nominal size by more than rounding.
USABLE_TOLERANCE = 0.03
# The largest accelerator has 288 GiB; in MiB the smallest would have 1,024.
MOST_ACCELERATOR_GIB = 1000
# The largest machines that are sold have 32,768 GiB and 1,920 vCPUs. With few of its processors in
# use (Azure M64-16ms) a machine has up to 122 GiB for each; in MiB, the smallest would have 512.
MOST_MEMORY_GIB, MOST_VCPUS = 65_536, 4096
LEAST_GIB_PER_VCPU, MOST_GIB_PER_VCPU = 0.2, 300
LEAST_GHZ, MOST_GHZ = 0.5, 7
MOST_ACCELERATORS = 10_000  # the largest slice of TPU chips that is sold as one has 8,960
MOST_NETWORK_GBPS = 60_000  # the most that is sold is 28,800, in a rack of 72 accelerators
MOST_DISK_GB = 1_000_000  # the most that is sold is 336,000 (AWS D3en)

# Prices on demand are changed a few times a year, by 44 % at most so far (AWS P5, June 2025).
MOVE_FACTOR = 2
# Spot prices move daily: by a factor of three within a month is usual, of five is not.
SPOT_MOVE_FACTOR = 5
# Providers retire a few families a year and change a few lists at a time; a source of which more is
# gone, has moved or is faulty was read wrong, or has changed its meaning.
VANISHED_SHARE = MOVED_SHARE = FAULTY_SHARE = 0.2
# A share of fewer types or offers says nothing.
LEAST_TYPES, LEAST_ROWS = 20, 50
# That of all of them does: five prices do not all double by chance.
LEAST_ALL = 5
# Prices on demand hold for months, spot prices for hours to days.
STALE_DAYS, STALE_SPOT_DAYS = 365, 30
