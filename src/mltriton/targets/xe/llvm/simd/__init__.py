"""A kernel for Xe as one vector program for each warp (Intel's vector compiler): what a lane's program is not."""
