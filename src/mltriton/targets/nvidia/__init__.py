"""NVIDIA's GPUs: tables, what a lane may ask and do (NVVM and PTX), PTX by LLVM, cubins by ptxas."""
