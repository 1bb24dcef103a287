// RUN: mltriton opt %s -p "store-by-warps" | filecheck %s
// Each of four warps has rows of its own in shared memory: it writes them once its last copy has read what was there,
// and starts the copy of its rows; no barrier for all warps is left.

// CHECK-LABEL: @stored
// CHECK: %[[ROWS:.*]] = ttng.tensor_map %out, {{.*}} : <f16>, <tensor<16x64xf16>>
// CHECK: scf.for
// CHECK-NOT: gpu.barrier
// CHECK: %[[OWN:.*]] = ttg.local_alloc : () -> !ttg.memdesc<4x16x64xf16
// CHECK: %[[WARP:.*]] = arith.index_cast
// CHECK: %[[THERE:.*]] = ttg.memdesc_subview %[[OWN]][%[[WARP]], %{{.*}}, %{{.*}}]
// CHECK: %[[ROW:.*]] = arith.addi %{{.*}}, %first
// CHECK: ttng.async_tma_store_wait
// CHECK-NEXT: ttg.local_store %{{.*}}, %[[THERE]]
// CHECK-NEXT: ttng.fence_async_shared
// CHECK-NEXT: ttng.async_tma_copy_local_to_global %[[ROWS]][%[[ROW]], %{{.*}}] %[[THERE]]
// CHECK-NOT: gpu.barrier
// CHECK: ttng.async_tma_store_wait
// CHECK: ttg.warp_yield
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
module attributes {mltriton.level = "warp", "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90"} {
tt.func public @stored(%out: !tt.ptr<f16>, %n: i64, %first: i32, %owner: i1, %steps: i32) {
  %one = arith.constant 1 : i64
  %map = ttng.tensor_map %out, [%n, %n], [%n, %one] : <f16>, <tensor<64x64xf16>>
  ttg.warp_specialize default {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %value = arith.constant dense<1.000000e+00> : tensor<16x64xf16, #mma>
    scf.for %i = %c0 to %steps step %c1 : i32 {
      %row = arith.muli %i, %c64 : i32
      %memory = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable>
      gpu.barrier
      %part = ttg.memdesc_subview %memory[%first, %c0] : !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable> -> !ttg.memdesc<16x64xf16, #shared, #ttg.shared_memory, mutable>
      ttg.local_store %value, %part : tensor<16x64xf16, #mma> -> !ttg.memdesc<16x64xf16, #shared, #ttg.shared_memory, mutable>
      gpu.barrier
      ttng.fence_async_shared
      gpu.barrier
      scf.if %owner {
        ttng.async_tma_copy_local_to_global %map[%row, %c0] %memory : !tt.tensordesc<tensor<64x64xf16>>, !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable>
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
