// RUN: mltriton opt %s -p "fence-shared-memory" | filecheck %s
// In front of the barrier behind which a product reads what was stored stands a fence; what products do not read, needs
// none.
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "mma:grouped", mltriton.level = "warp"} {
// CHECK-LABEL: @stored
// CHECK: ttg.local_store
// CHECK-NEXT: ttng.fence_async_shared
// CHECK-NEXT: gpu.barrier
// CHECK-NEXT: ttg.local_store
// CHECK-NEXT: gpu.barrier
// CHECK: ttng.warp_group_dot
tt.func public @stored(%x: tensor<16x64xf16, #mma>, %c: tensor<16x64xf32, #mma>) {
  %c0 = arith.constant 0 : i32
  %s = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable>
  %t = ttg.local_alloc : () -> !ttg.memdesc<16x64xf16, #shared, #ttg.shared_memory, mutable>
  %w = ttg.memdesc_subview %s[%c0, %c0] : !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable> -> !ttg.memdesc<16x64xf16, #shared, #ttg.shared_memory, mutable>
  ttg.local_store %x, %w : tensor<16x64xf16, #mma> -> !ttg.memdesc<16x64xf16, #shared, #ttg.shared_memory, mutable>
  gpu.barrier
  ttg.local_store %x, %t : tensor<16x64xf16, #mma> -> !ttg.memdesc<16x64xf16, #shared, #ttg.shared_memory, mutable>
  gpu.barrier
  %d = ttng.warp_group_dot %w, %s, %c : !ttg.memdesc<16x64xf16, #shared, #ttg.shared_memory, mutable> * !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable> -> tensor<16x64xf32, #mma>
  tt.return
}
}
