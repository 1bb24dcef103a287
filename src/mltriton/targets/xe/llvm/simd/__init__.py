"""A kernel for Xe in SIMD form: one program for each warp (Intel's vector compiler): what a lane's program is not."""
