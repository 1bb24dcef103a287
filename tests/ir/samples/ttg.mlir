#blocked = #ttg.blocked<{sizePerWarp = [8, 16], warpsPerCTA = [2, 2], order = [1, 0]}>
#blocked1 = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [2, 2], order = [1, 0]}>
#dot0 = #ttg.dot_op<{opIdx = 0, parent = #blocked}>
#dot1 = #ttg.dot_op<{opIdx = 1, parent = #blocked, kWidth = 2}>
#dot0_1 = #ttg.dot_op<{opIdx = 0, parent = #blocked1}>
#slice = #ttg.slice<{dim = 1, parent = #blocked}>
module attributes {mltriton.level = "ttg", "ttg.num-warps" = 4 : i32, ttg.target = "generic", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @layouts(%x: tensor<16x32xf16, #blocked>, %p: tensor<16x32x!tt.ptr<f16>, #blocked>, %m: tensor<16x32xi1, #blocked>, %i: i32, %n: tensor<16x8xi32, #blocked>) {
    %0 = ttg.convert_layout %x : tensor<16x32xf16, #blocked> -> tensor<16x32xf16, #blocked1>
    %1 = ttg.convert_layout %x : tensor<16x32xf16, #blocked> -> tensor<16x32xf16, #dot0>
    %2 = ttg.convert_layout %x : tensor<16x32xf16, #blocked> -> tensor<16x32xf16, #dot1>
    %3 = ttg.convert_layout %0 : tensor<16x32xf16, #blocked1> -> tensor<16x32xf16, #dot0_1>
    %4 = "tt.reduce"(%x) <{axis = 1 : i32}> ({
    ^bb0(%arg0: f16, %arg1: f16):
      %5 = arith.addf %arg0, %arg1 : f16
      tt.reduce.return %5 : f16
    }) : (tensor<16x32xf16, #blocked>) -> tensor<16xf16, #slice>
    %6 = ttg.local_alloc : () -> !ttg.memdesc<2x16x32xf16, #ttg.shared_memory, mutable>
    %7 = ttg.local_alloc %x : (tensor<16x32xf16, #blocked>) -> !ttg.memdesc<16x32xf16, #ttg.shared_memory>
    %8 = ttg.memdesc_subview %6[%i, %i, %i] : !ttg.memdesc<2x16x32xf16, #ttg.shared_memory, mutable> -> !ttg.memdesc<16x32xf16, #ttg.shared_memory, mutable>
    %9 = ttg.memdesc_trans %8 : !ttg.memdesc<16x32xf16, #ttg.shared_memory, mutable> -> !ttg.memdesc<32x16xf16, #ttg.shared_memory, mutable>
    ttg.local_store %x, %8 : tensor<16x32xf16, #blocked> -> !ttg.memdesc<16x32xf16, #ttg.shared_memory, mutable>
    %10 = ttg.local_load %8 : !ttg.memdesc<16x32xf16, #ttg.shared_memory, mutable> -> tensor<16x32xf16, #blocked>
    %11 = ttg.async_copy_global_to_local %p, %8 mask %m other %x : tensor<16x32x!tt.ptr<f16>, #blocked> -> !ttg.memdesc<16x32xf16, #ttg.shared_memory, mutable>
    %12 = ttg.async_copy_global_to_local %p, %8 : tensor<16x32x!tt.ptr<f16>, #blocked> -> !ttg.memdesc<16x32xf16, #ttg.shared_memory, mutable>
    %13 = ttg.async_commit_group %11, %12
    %14 = ttg.async_wait %13 {num = 1 : i32}
    %15 = ttg.local_gather %8[%n] {axis = 1 : i32} : !ttg.memdesc<16x32xf16, #ttg.shared_memory, mutable>, tensor<16x8xi32, #blocked> -> tensor<16x8xf16, #blocked>
    ttig.prefetch %p, %m cacheModifier = cg : tensor<16x32x!tt.ptr<f16>, #blocked>
    gpu.barrier
    ttg.warp_specialize default {
      %16 = ttg.local_load %8 : !ttg.memdesc<16x32xf16, #ttg.shared_memory, mutable> -> tensor<16x32xf16, #blocked>
      ttg.local_store %16, %8 : tensor<16x32xf16, #blocked> -> !ttg.memdesc<16x32xf16, #ttg.shared_memory, mutable>
      ttg.warp_yield
    } partition num_warps(4) {
      ttg.warp_return
    } {default_registers = 240 : i32, partition_registers = 24 : i32}
    tt.return
  }
}
