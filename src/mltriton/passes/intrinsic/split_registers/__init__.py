"""match-target-size where blocks live in registers: every operation unrolled into pieces of the target's size.

Level: warp to intrinsic. `sizes.py` says how large a piece is, `pieces.py` holds the pieces of a block, `rules.py`
splits each kind of operation, `driver.py` rebuilds functions. Source: ML-Triton paper, section 2.3, Figure 5 and
Listing 4.
"""
