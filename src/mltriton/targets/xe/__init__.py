"""Intel's Xe GPUs: matrix engine (DPAS) and 2D block accesses through SPIR-V."""
