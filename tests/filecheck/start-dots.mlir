// RUN: mltriton opt %s -p "start-dots" | filecheck %s
// A product that a loop adds up is waited for in the next iteration and behind the loop, where the loop leaves what was
// multiplied; one whose result is taken at once is waited for where it stands.
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "mma:grouped", mltriton.level = "ttg"} {
// CHECK-LABEL: @adds_up
// CHECK: %[[SUM:.*]] = scf.for
// CHECK: %[[D:.*]] = ttng.warp_group_dot %{{.*}}, %{{.*}}, %[[ACC:.*]] {isAsync = true}
// CHECK-NEXT: %[[W:.*]] = ttng.warp_group_dot_wait %[[D]] {pendings = 1 : i32}
// CHECK-NEXT: scf.yield %[[W]]
// CHECK: %[[R:.*]] = ttng.warp_group_dot_wait %[[SUM]]
// CHECK-NEXT: tt.return %[[R]]
tt.func public @adds_up(%a: !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable>, %zero: tensor<64x64xf32, #mma>, %n: i32) -> tensor<64x64xf32, #mma> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %b = ttg.local_alloc : () -> !ttg.memdesc<3x64x64xf16, #shared, #ttg.shared_memory, mutable>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32, #mma>) : i32 {
    %s = ttg.memdesc_subview %b[%i, %c0, %c0] : !ttg.memdesc<3x64x64xf16, #shared, #ttg.shared_memory, mutable> -> !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable>
    %d = tt.dot %s, %s, %acc : !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable> * !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable> -> tensor<64x64xf32, #mma>
    scf.yield %d : tensor<64x64xf32, #mma>
  } {"ttg.slots-kept" = 1 : i32}
  tt.return %r : tensor<64x64xf32, #mma>
}

// CHECK-LABEL: @is_written_again
// CHECK: ttng.warp_group_dot {{.*}} {isAsync = true}
// CHECK-NEXT: ttng.warp_group_dot_wait %{{.*}} :
tt.func public @is_written_again(%x: tensor<64x64xf16, #mma>, %zero: tensor<64x64xf32, #mma>, %n: i32) -> tensor<64x64xf32, #mma> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %s = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32, #mma>) : i32 {
    ttg.local_store %x, %s : tensor<64x64xf16, #mma> -> !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable>
    %d = tt.dot %s, %s, %acc : !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable> * !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable> -> tensor<64x64xf32, #mma>
    scf.yield %d : tensor<64x64xf32, #mma>
  }
  tt.return %r : tensor<64x64xf32, #mma>
}

// Registers that a product reads are kept until it is done.
// CHECK-LABEL: @of_registers
// CHECK: %[[D:.*]] = ttng.warp_group_dot %[[A:.*]], %{{.*}}, %{{.*}} {isAsync = true}
// CHECK-NEXT: %[[W:.*]], %{{.*}} = ttng.warp_group_dot_wait %[[D]], %[[A]] :
// CHECK-NEXT: arith.addf %[[W]], %[[W]]
tt.func public @of_registers(%a: tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>, %b: !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable>, %c: tensor<64x64xf32, #mma>) -> tensor<64x64xf32, #mma> {
  %d = tt.dot %a, %b, %c : tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable> -> tensor<64x64xf32, #mma>
  %r = arith.addf %d, %d : tensor<64x64xf32, #mma>
  tt.return %r : tensor<64x64xf32, #mma>
}

// Products go on beside new blocks in shared memory and updates of global memory; they are waited for in their order.
// CHECK-LABEL: @beside_updates
// CHECK: %[[A:.*]] = ttng.warp_group_dot {{.*}} {isAsync = true}
// CHECK-NEXT: ttg.local_alloc
// CHECK-NEXT: %[[B:.*]] = ttng.warp_group_dot {{.*}} {isAsync = true}
// CHECK-NEXT: %[[C:.*]] = ttng.warp_group_dot {{.*}} {isAsync = true}
// CHECK-NEXT: %[[FIRST:.*]] = ttng.warp_group_dot_wait %[[A]] {pendings = 2 : i32}
// CHECK-NEXT: %[[SECOND:.*]] = ttng.warp_group_dot_wait %[[B]] {pendings = 1 : i32}
// CHECK-NEXT: tt.atomic_rmw fadd, relaxed, gpu, %{{.*}}, %[[SECOND]]
// CHECK-NEXT: %[[THIRD:.*]] = ttng.warp_group_dot_wait %[[C]] :
// CHECK-NEXT: arith.addf %[[FIRST]], %[[THIRD]]
tt.func public @beside_updates(%s: !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable>, %x: tensor<64x64xf16, #mma>, %p: tensor<64x64x!tt.ptr<f32>, #mma>, %zero: tensor<64x64xf32, #mma>) -> tensor<64x64xf32, #mma> {
  %a = tt.dot %s, %s, %zero : !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable> * !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable> -> tensor<64x64xf32, #mma>
  %m = ttg.local_alloc %x : (tensor<64x64xf16, #mma>) -> !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable>
  %b = tt.dot %s, %m, %zero : !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable> * !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable> -> tensor<64x64xf32, #mma>
  %c = tt.dot %s, %s, %zero : !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable> * !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable> -> tensor<64x64xf32, #mma>
  %u = tt.atomic_rmw fadd, relaxed, gpu, %p, %b : (tensor<64x64x!tt.ptr<f32>, #mma>, tensor<64x64xf32, #mma>) -> tensor<64x64xf32, #mma>
  %r = arith.addf %a, %c : tensor<64x64xf32, #mma>
  tt.return %r : tensor<64x64xf32, #mma>
}
}
