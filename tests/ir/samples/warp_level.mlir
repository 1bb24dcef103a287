module attributes {mltriton.level = "tt", mltriton.warp_level = true, "ttg.num-warps" = 4 : i32, ttg.target = "generic"} {
  tt.func public @warps(%p: !tt.ptr<f32>, %x: tensor<16xf32>) {
    %0 = gpu.subgroup_id : index
    %w = arith.index_cast %0 : index to i32
    %1 = ttg.local_alloc : () -> !ttg.memdesc<4x16xf32, #ttg.shared_memory, mutable>
    %c0_i32 = arith.constant 0 : i32
    %2 = ttg.memdesc_subview %1[%w, %c0_i32] : !ttg.memdesc<4x16xf32, #ttg.shared_memory, mutable> -> !ttg.memdesc<16xf32, #ttg.shared_memory, mutable>
    ttg.local_store %x, %2 : tensor<16xf32> -> !ttg.memdesc<16xf32, #ttg.shared_memory, mutable>
    gpu.barrier
    %3 = ttg.local_load %1 : !ttg.memdesc<4x16xf32, #ttg.shared_memory, mutable> -> tensor<4x16xf32>
    %4 = "ttg.cross_warp_reduce"(%x) <{dst_warps = array<i32: 0, 2>}> ({
    ^bb0(%arg0: f32, %arg1: f32):
      %5 = arith.addf %arg0, %arg1 : f32
      tt.reduce.return %5 : f32
    }) : (tensor<16xf32>) -> tensor<16xf32>
    %6:2 = "ttg.cross_warp_reduce"(%w, %w) ({
    ^bb0(%arg0_0: i32, %arg1_0: i32, %arg2: i32, %arg3: i32):
      %7 = arith.addi %arg0_0, %arg2 : i32
      tt.reduce.return %7, %arg3 : i32, i32
    }) : (i32, i32) -> (i32, i32)
    %8 = "ttg.cross_warp_scan"(%w) <{reverse = true}> ({
    ^bb0(%arg0_1: i32, %arg1_1: i32):
      %9 = arith.addi %arg0_1, %arg1_1 : i32
      tt.scan.return %9 : i32
    }) : (i32) -> i32
    tt.return
  }
}
