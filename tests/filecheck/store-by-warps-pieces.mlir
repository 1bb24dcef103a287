// RUN: mltriton opt %s -p "store-by-warps" | filecheck %s
// Rows of 512 bytes go in two pieces through the same memory, which the engine has read before the second one is
// written; a store beside it of rows of 256 bytes takes that memory, too.

// CHECK-LABEL: @stored
// CHECK: scf.for
// CHECK: %[[OWN:.*]] = ttg.local_alloc : () -> !ttg.memdesc<4x16x128xf16
// CHECK: %[[THERE:.*]] = ttg.memdesc_subview %[[OWN]]
// CHECK: %[[FIRST:.*]] = ttig.extract %value[0] : tensor<16x256xf16, #mma> -> tensor<16x128xf16, #mma>
// CHECK: ttng.async_tma_store_wait
// CHECK-NEXT: ttg.local_store %[[FIRST]], %[[THERE]]
// CHECK: ttng.async_tma_copy_local_to_global %{{.*}}[%{{.*}}, %c0] %[[THERE]]
// CHECK: %[[SECOND:.*]] = ttig.extract %value[1]
// CHECK: %[[COLUMN:.*]] = arith.addi %c0, %{{.*}}
// CHECK: ttng.async_tma_store_wait
// CHECK-NEXT: ttg.local_store %[[SECOND]], %[[THERE]]
// CHECK: ttng.async_tma_copy_local_to_global %{{.*}}[%{{.*}}, %[[COLUMN]]] %[[THERE]]
// CHECK-NOT: ttg.local_alloc
// CHECK: ttng.async_tma_store_wait
// CHECK-NEXT: ttg.local_store %more, %[[THERE]]
// CHECK: ttng.async_tma_copy_local_to_global %{{.*}}[%{{.*}}, %c256] %[[THERE]]
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 256, 16]}>
module attributes {mltriton.level = "warp", "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90"} {
tt.func public @stored(%out: !tt.ptr<f16>, %n: i64, %first: i32, %owner: i1, %steps: i32) {
  %one = arith.constant 1 : i64
  %map = ttng.tensor_map %out, [%n, %n], [%n, %one] : <f16>, <tensor<64x256xf16>>
  %beside = ttng.tensor_map %out, [%n, %n], [%n, %one] : <f16>, <tensor<64x128xf16>>
  ttg.warp_specialize default {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %c256 = arith.constant 256 : i32
    %value = arith.constant dense<1.000000e+00> : tensor<16x256xf16, #mma>
    %more = arith.constant dense<2.000000e+00> : tensor<16x128xf16, #mma>
    scf.for %i = %c0 to %steps step %c1 : i32 {
      %row = arith.muli %i, %c64 : i32
      %memory = ttg.local_alloc : () -> !ttg.memdesc<64x256xf16, #shared, #ttg.shared_memory, mutable>
      gpu.barrier
      %part = ttg.memdesc_subview %memory[%first, %c0] : !ttg.memdesc<64x256xf16, #shared, #ttg.shared_memory, mutable> -> !ttg.memdesc<16x256xf16, #shared, #ttg.shared_memory, mutable>
      ttg.local_store %value, %part : tensor<16x256xf16, #mma> -> !ttg.memdesc<16x256xf16, #shared, #ttg.shared_memory, mutable>
      ttng.fence_async_shared
      gpu.barrier
      scf.if %owner {
        ttng.async_tma_copy_local_to_global %map[%row, %c0] %memory : !tt.tensordesc<tensor<64x256xf16>>, !ttg.memdesc<64x256xf16, #shared, #ttg.shared_memory, mutable>
      }
      ttng.async_tma_store_wait
      %memory2 = ttg.local_alloc : () -> !ttg.memdesc<64x128xf16, #shared, #ttg.shared_memory, mutable>
      gpu.barrier
      %part2 = ttg.memdesc_subview %memory2[%first, %c0] : !ttg.memdesc<64x128xf16, #shared, #ttg.shared_memory, mutable> -> !ttg.memdesc<16x128xf16, #shared, #ttg.shared_memory, mutable>
      ttg.local_store %more, %part2 : tensor<16x128xf16, #mma> -> !ttg.memdesc<16x128xf16, #shared, #ttg.shared_memory, mutable>
      ttng.fence_async_shared
      gpu.barrier
      scf.if %owner {
        ttng.async_tma_copy_local_to_global %beside[%row, %c256] %memory2 : !tt.tensordesc<tensor<64x128xf16>>, !ttg.memdesc<64x128xf16, #shared, #ttg.shared_memory, mutable>
      }
      ttng.async_tma_store_wait
    }
    ttg.warp_yield
  } partition num_warps(4) {
    ttg.warp_return
  }
  tt.return
}
}
