// RUN: mltriton opt %s -p allocate-shared-memory | filecheck %s
// Buffers that warps exchange blocks through one after the other, each behind a barrier, share a place, also in a loop;
// what is still needed keeps its own, and so does a buffer without a barrier in front of it.

// CHECK-LABEL: @one_after_the_other
// CHECK: ttg.local_alloc {allocation.offset = 0 : i32}
// CHECK: ttg.local_alloc {allocation.offset = 0 : i32}
// CHECK-LABEL: @needed_longer
// CHECK: ttg.local_alloc {allocation.offset = 0 : i32}
// CHECK: ttg.local_alloc {allocation.offset = 128 : i32}
// CHECK: ttg.local_alloc {allocation.offset = 0 : i32}
// CHECK-LABEL: @in_a_loop
// CHECK: ttg.local_alloc {allocation.offset = 0 : i32}
// CHECK: ttg.local_alloc {allocation.offset = 128 : i32}
// CHECK: ttg.local_alloc {allocation.offset = 128 : i32}
// CHECK-LABEL: @without_a_barrier
// CHECK: ttg.local_alloc {allocation.offset = 0 : i32}
// CHECK: ttg.local_alloc {allocation.offset = 0 : i32}
// CHECK: ttg.local_alloc {allocation.offset = 128 : i32}
// CHECK-LABEL: @copied_and_multiplied
// CHECK: ttg.local_alloc {allocation.offset = 0 : i32}
// CHECK: ttg.local_alloc {allocation.offset = 128 : i32}
// CHECK: ttg.local_alloc {allocation.offset = 0 : i32}
#own = #ttg.linear<{register = [], lane = [[1], [2], [4], [8], [16]], warp = [], block = []}>
module attributes {mltriton.level = "intrinsic", "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90"} {
tt.func public @one_after_the_other(%x: tensor<32xf32, #own>) {
  %a = ttg.local_alloc : () -> !ttg.memdesc<32xf32, #ttg.shared_memory, mutable>
  gpu.barrier
  ttg.local_store %x, %a : tensor<32xf32, #own> -> !ttg.memdesc<32xf32, #ttg.shared_memory, mutable>
  gpu.barrier
  %y = ttg.local_load %a : !ttg.memdesc<32xf32, #ttg.shared_memory, mutable> -> tensor<32xf32, #own>
  %b = ttg.local_alloc : () -> !ttg.memdesc<32xf32, #ttg.shared_memory, mutable>
  gpu.barrier
  ttg.local_store %y, %b : tensor<32xf32, #own> -> !ttg.memdesc<32xf32, #ttg.shared_memory, mutable>
  tt.return
}
tt.func public @needed_longer(%x: tensor<32xf32, #own>) {
  %a = ttg.local_alloc : () -> !ttg.memdesc<32xf32, #ttg.shared_memory, mutable>
  gpu.barrier
  ttg.local_store %x, %a : tensor<32xf32, #own> -> !ttg.memdesc<32xf32, #ttg.shared_memory, mutable>
  %b = ttg.local_alloc : () -> !ttg.memdesc<32xf32, #ttg.shared_memory, mutable>
  gpu.barrier
  ttg.local_store %x, %b : tensor<32xf32, #own> -> !ttg.memdesc<32xf32, #ttg.shared_memory, mutable>
  %y = ttg.local_load %a : !ttg.memdesc<32xf32, #ttg.shared_memory, mutable> -> tensor<32xf32, #own>
  %c = ttg.local_alloc : () -> !ttg.memdesc<32xf32, #ttg.shared_memory, mutable>
  %zero = arith.constant 0 : i32
  gpu.barrier
  %part = ttg.memdesc_subview %b[%zero] : !ttg.memdesc<32xf32, #ttg.shared_memory, mutable> -> !ttg.memdesc<32xf32, #ttg.shared_memory, mutable>
  ttg.local_store %y, %part : tensor<32xf32, #own> -> !ttg.memdesc<32xf32, #ttg.shared_memory, mutable>
  ttg.local_store %y, %c : tensor<32xf32, #own> -> !ttg.memdesc<32xf32, #ttg.shared_memory, mutable>
  tt.return
}
tt.func public @in_a_loop(%x: tensor<32xf32, #own>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a = ttg.local_alloc : () -> !ttg.memdesc<32xf32, #ttg.shared_memory, mutable>
  gpu.barrier
  scf.for %i = %c0 to %n step %c1 : i32 {
    %b = ttg.local_alloc : () -> !ttg.memdesc<32xf32, #ttg.shared_memory, mutable>
    gpu.barrier
    ttg.local_store %x, %b : tensor<32xf32, #own> -> !ttg.memdesc<32xf32, #ttg.shared_memory, mutable>
    %c = ttg.local_alloc : () -> !ttg.memdesc<32xf32, #ttg.shared_memory, mutable>
    gpu.barrier
    ttg.local_store %x, %c : tensor<32xf32, #own> -> !ttg.memdesc<32xf32, #ttg.shared_memory, mutable>
    ttg.local_store %x, %a : tensor<32xf32, #own> -> !ttg.memdesc<32xf32, #ttg.shared_memory, mutable>
    scf.yield
  }
  tt.return
}
tt.func public @without_a_barrier(%x: tensor<32xf32, #own>) {
  %a = ttg.local_alloc : () -> !ttg.memdesc<32xf32, #ttg.shared_memory, mutable>
  ttg.local_store %x, %a : tensor<32xf32, #own> -> !ttg.memdesc<32xf32, #ttg.shared_memory, mutable>
  %b = ttg.local_alloc : () -> !ttg.memdesc<32xf32, #ttg.shared_memory, mutable>
  gpu.barrier
  ttg.local_store %x, %b : tensor<32xf32, #own> -> !ttg.memdesc<32xf32, #ttg.shared_memory, mutable>
  %c = ttg.local_alloc : () -> !ttg.memdesc<32xf32, #ttg.shared_memory, mutable>
  ttg.local_store %x, %c : tensor<32xf32, #own> -> !ttg.memdesc<32xf32, #ttg.shared_memory, mutable>
  tt.return
}
tt.func public @copied_and_multiplied(%p: tensor<32x!tt.ptr<f32>, #own>, %x: tensor<32xf32, #own>) {
  %a = ttg.local_alloc : () -> !ttg.memdesc<32xf32, #ttg.shared_memory, mutable>
  %t = ttg.async_copy_global_to_local %p, %a : tensor<32x!tt.ptr<f32>, #own> -> !ttg.memdesc<32xf32, #ttg.shared_memory, mutable>
  %g = ttg.async_commit_group
  gpu.barrier
  %b = ttg.local_alloc : () -> !ttg.memdesc<32xf32, #ttg.shared_memory, mutable>
  ttg.local_store %x, %b : tensor<32xf32, #own> -> !ttg.memdesc<32xf32, #ttg.shared_memory, mutable>
  %w = ttg.async_wait
  gpu.barrier
  %c = ttg.local_alloc : () -> !ttg.memdesc<32xf32, #ttg.shared_memory, mutable>
  ttg.local_store %x, %c : tensor<32xf32, #own> -> !ttg.memdesc<32xf32, #ttg.shared_memory, mutable>
  %y = ttg.local_load %b : !ttg.memdesc<32xf32, #ttg.shared_memory, mutable> -> tensor<32xf32, #own>
  tt.return
}
}
