#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#dot0 = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
module attributes {mltriton.level = "ttg", "ttg.num-warps" = 4 : i32, ttg.target = "mma:grouped", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @engines(%p: !tt.ptr<f16>, %rows: i64, %i: i32, %first: i1, %x: tensor<64x64xf16, #dot0>, %c: tensor<64x64xf32, #mma>) {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i64
    %map = ttng.tensor_map %p, [%rows, %rows], [%rows, %one] : <f16>, <tensor<64x64xf16>>
    %other = ttng.tensor_map %p, [%rows, %rows], [%rows, %one] positive [%rows] apart [%p] : <f16>, <tensor<64x64xf16>>
    %programs = ttng.grid_size : i32
    %m = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable>
    %b = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #ttg.shared_memory, mutable>
    ttng.init_barrier %b, 1 : !ttg.memdesc<1xi64, #ttg.shared_memory, mutable>
    ttng.barrier_expect %b, 8192, %first : !ttg.memdesc<1xi64, #ttg.shared_memory, mutable>
    ttng.async_tma_copy_global_to_local %map[%i, %zero] %m, %b, %first : !tt.tensordesc<tensor<64x64xf16>>, !ttg.memdesc<1xi64, #ttg.shared_memory, mutable> -> !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable>
    ttng.wait_barrier %b, %zero : !ttg.memdesc<1xi64, #ttg.shared_memory, mutable>
    ttng.arrive_barrier %b, 1 : !ttg.memdesc<1xi64, #ttg.shared_memory, mutable>
    %d = ttng.warp_group_dot %x, %m, %c {isAsync = true} : tensor<64x64xf16, #dot0> * !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable> -> tensor<64x64xf32, #mma>
    %e = ttng.warp_group_dot_wait %d : (tensor<64x64xf32, #mma>) -> tensor<64x64xf32, #mma>
    ttng.inval_barrier %b : !ttg.memdesc<1xi64, #ttg.shared_memory, mutable>
    ttng.fence_async_shared
    ttng.async_tma_copy_local_to_global %map[%i, %zero] %m : !tt.tensordesc<tensor<64x64xf16>>, !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable>
    ttng.async_tma_reduce add, %map[%i, %zero] %m : !tt.tensordesc<tensor<64x64xf16>>, !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable>
    ttng.async_tma_store_wait
    ttng.async_tma_store_wait {written = true}
    ttng.fence_async_shared {everywhere = true}
    ttng.grid_dependency_wait
    ttng.launch_dependents
    tt.return
  }
}
