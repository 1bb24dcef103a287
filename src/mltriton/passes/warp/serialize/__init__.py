"""The parts of the pass `serialize-warps`. Level: warp."""
