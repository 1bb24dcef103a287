// RUN: mltriton opt %s -p "distribute-to-warps,canonicalize" | filecheck %s
// The first warp starts what the engine does: by one branch, where nothing else happens in between. All wait.

// CHECK: tt.func public @fetch
// CHECK-COUNT-1: scf.if %[[FIRST:.*]] {
// CHECK: ttng.init_barrier
// CHECK: ttng.barrier_expect
// CHECK: ttng.async_tma_copy_global_to_local
// CHECK: }
// CHECK-NEXT: ttng.wait_barrier
// CHECK-NEXT: scf.if %[[FIRST]] {
// CHECK-NEXT: ttng.inval_barrier
module attributes {mltriton.level = "ttg", "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90"} {
tt.func public @fetch(%p: !tt.ptr<f32>, %n: i64, %i: i32) {
  %one = arith.constant 1 : i64
  %zero = arith.constant 0 : i32
  %map = ttng.tensor_map %p, [%n, %n], [%n, %one] : <f32>, <tensor<16x8xf32>>
  %m = ttg.local_alloc : () -> !ttg.memdesc<2x16x8xf32, #ttg.shared_memory, mutable>
  %b = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #ttg.shared_memory, mutable>
  ttng.init_barrier %b, 1 : !ttg.memdesc<1xi64, #ttg.shared_memory, mutable>
  ttng.barrier_expect %b, 512 : !ttg.memdesc<1xi64, #ttg.shared_memory, mutable>
  %there = ttg.memdesc_subview %m[%i, %zero, %zero] : !ttg.memdesc<2x16x8xf32, #ttg.shared_memory, mutable> -> !ttg.memdesc<16x8xf32, #ttg.shared_memory, mutable>
  ttng.async_tma_copy_global_to_local %map[%i, %zero] %there, %b : !tt.tensordesc<tensor<16x8xf32>>, !ttg.memdesc<1xi64, #ttg.shared_memory, mutable> -> !ttg.memdesc<16x8xf32, #ttg.shared_memory, mutable>
  ttng.wait_barrier %b, %zero : !ttg.memdesc<1xi64, #ttg.shared_memory, mutable>
  ttng.inval_barrier %b : !ttg.memdesc<1xi64, #ttg.shared_memory, mutable>
  tt.return
}
}
