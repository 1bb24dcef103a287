// RUN: mltriton opt %s -p "alternate-buffers" | filecheck %s
// What a product of the iteration reads has two places by turns, and warps meet once. Not where the loop also reads what
// warps have written, and not where products go on into the next iteration.
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [16, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
module attributes {"ttg.num-warps" = 16 : i32, ttg.target = "cuda:90", mltriton.level = "intrinsic"} {
// CHECK-LABEL: @once
// CHECK: %[[places:.*]] = ttg.local_alloc : () -> !ttg.memdesc<2x64x64xf16
// CHECK-NEXT: gpu.barrier
// CHECK: scf.for {{.*}}, %[[place:[a-z0-9_]+]] = %
// CHECK: %[[at:.*]] = ttg.memdesc_subview %[[places]][%[[place]],
// CHECK-NOT: gpu.barrier
// CHECK: ttg.local_store
// CHECK-NEXT: ttng.fence_async_shared
// CHECK-NEXT: gpu.barrier
// CHECK: ttng.warp_group_dot %{{.*}}, %[[at]]
// CHECK: arith.xori %[[place]],
tt.func public @once(%x: tensor<16x64xf16, #mma>, %c: tensor<16x64xf32, #mma>, %n: i32, %row: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %l = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%t = %c) -> (tensor<16x64xf32, #mma>) : i32 {
    %s = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable>
    gpu.barrier
    %w = ttg.memdesc_subview %s[%row, %c0] : !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable> -> !ttg.memdesc<16x64xf16, #shared, #ttg.shared_memory, mutable>
    ttg.local_store %x, %w : tensor<16x64xf16, #mma> -> !ttg.memdesc<16x64xf16, #shared, #ttg.shared_memory, mutable>
    ttng.fence_async_shared
    gpu.barrier
    %a = ttg.memdesc_subview %l[%row, %c0] : !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable> -> !ttg.memdesc<16x64xf16, #shared, #ttg.shared_memory, mutable>
    %d = ttng.warp_group_dot %a, %s, %t {isAsync = true} : !ttg.memdesc<16x64xf16, #shared, #ttg.shared_memory, mutable> * !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable> -> tensor<16x64xf32, #mma>
    %e = ttng.warp_group_dot_wait %d : (tensor<16x64xf32, #mma>) -> tensor<16x64xf32, #mma>
    scf.yield %e : tensor<16x64xf32, #mma>
  }
  tt.return
}
// CHECK-LABEL: @written
// CHECK-NOT: memdesc<2x
// CHECK: tt.return
tt.func public @written(%x: tensor<16x64xf16, #mma>, %c: tensor<16x64xf32, #mma>, %n: i32, %row: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %l = ttg.local_alloc : () -> !ttg.memdesc<16x64xf16, #shared, #ttg.shared_memory, mutable>
  ttg.local_store %x, %l : tensor<16x64xf16, #mma> -> !ttg.memdesc<16x64xf16, #shared, #ttg.shared_memory, mutable>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%t = %c) -> (tensor<16x64xf32, #mma>) : i32 {
    %s = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable>
    gpu.barrier
    %w = ttg.memdesc_subview %s[%row, %c0] : !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable> -> !ttg.memdesc<16x64xf16, #shared, #ttg.shared_memory, mutable>
    ttg.local_store %x, %w : tensor<16x64xf16, #mma> -> !ttg.memdesc<16x64xf16, #shared, #ttg.shared_memory, mutable>
    ttng.fence_async_shared
    gpu.barrier
    %d = ttng.warp_group_dot %l, %s, %t {isAsync = true} : !ttg.memdesc<16x64xf16, #shared, #ttg.shared_memory, mutable> * !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable> -> tensor<16x64xf32, #mma>
    %e = ttng.warp_group_dot_wait %d : (tensor<16x64xf32, #mma>) -> tensor<16x64xf32, #mma>
    scf.yield %e : tensor<16x64xf32, #mma>
  }
  tt.return
}
// CHECK-LABEL: @later
// CHECK-NOT: memdesc<2x
// CHECK: tt.return
tt.func public @later(%x: tensor<16x64xf16, #mma>, %c: tensor<16x64xf32, #mma>, %n: i32, %row: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %l = ttg.local_alloc : () -> !ttg.memdesc<16x64xf16, #shared, #ttg.shared_memory, mutable>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%t = %c) -> (tensor<16x64xf32, #mma>) : i32 {
    %s = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable>
    gpu.barrier
    %w = ttg.memdesc_subview %s[%row, %c0] : !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable> -> !ttg.memdesc<16x64xf16, #shared, #ttg.shared_memory, mutable>
    ttg.local_store %x, %w : tensor<16x64xf16, #mma> -> !ttg.memdesc<16x64xf16, #shared, #ttg.shared_memory, mutable>
    ttng.fence_async_shared
    gpu.barrier
    %d = ttng.warp_group_dot %l, %s, %t {isAsync = true} : !ttg.memdesc<16x64xf16, #shared, #ttg.shared_memory, mutable> * !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable> -> tensor<16x64xf32, #mma>
    %e = ttng.warp_group_dot_wait %d {pendings = 1 : i32} : (tensor<16x64xf32, #mma>) -> tensor<16x64xf32, #mma>
    scf.yield %e : tensor<16x64xf32, #mma>
  }
  tt.return
}
}
