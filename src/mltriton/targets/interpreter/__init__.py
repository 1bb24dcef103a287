"""The reference executor as a target: kernels run in numpy, every access checked."""
