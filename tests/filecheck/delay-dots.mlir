// RUN: mltriton opt %s -p "delay-dots,start-dots" | filecheck %s
// An iteration starts its first dot, then the second one of the iteration before, and goes on with the first one's
// result; the last second dot stands behind the loop and its copies.
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#left = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "mma:grouped", mltriton.level = "ttg"} {
// CHECK-LABEL: @attention
// CHECK-DAG: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<64x64xf16, #dot0>
// CHECK: %[[R:.*]], %{{.*}}, %[[RL:.*]], %[[RS:.*]] = scf.for {{.*}} iter_args(%[[SUMS:.*]] = %{{.*}}, %[[SLOT:.*]] = %c0, %[[LEFT:.*]] = %[[ZERO]], %[[BEFORE:.*]] = %c0)
// CHECK-NEXT: ttg.async_wait
// CHECK: %[[S:.*]] = ttng.warp_group_dot %{{.*}} {isAsync = true}
// CHECK: %[[V:.*]] = ttg.memdesc_subview %{{.*}}[%[[BEFORE]],
// CHECK-NEXT: %[[D:.*]] = ttng.warp_group_dot %[[LEFT]], %[[V]], %[[SUMS]] {isAsync = true}
// CHECK: %[[SCORES:.*]] = ttng.warp_group_dot_wait %[[S]] {pendings = 1 : i32}
// CHECK: %[[P:.*]] = math.exp2 %[[SCORES]]
// CHECK: %[[SUM:.*]], %{{.*}} = ttng.warp_group_dot_wait %[[D]], %[[LEFT]] :
// CHECK-NEXT: %[[SCALED:.*]] = arith.mulf %[[SUM]], %[[P]]
// CHECK: %[[HALF:.*]] = arith.truncf %[[P]]
// CHECK-NEXT: %[[NEXT:.*]] = ttg.convert_layout %[[HALF]]
// CHECK-NEXT: scf.yield %[[SCALED]], %{{.*}}, %[[NEXT]], %[[SLOT]]
// CHECK: ttg.async_wait
// CHECK: %[[LAST:.*]] = ttg.memdesc_subview %{{.*}}[%[[RS]],
// CHECK-NEXT: ttng.warp_group_dot %[[RL]], %[[LAST]], %[[R]] {isAsync = true}
// CHECK: %[[ALL:.*]], %{{.*}} = ttng.warp_group_dot_wait
// CHECK-NEXT: arith.select %{{.*}}, %[[ALL]], %[[R]]
// CHECK-NEXT: ttg.async_wait
tt.func public @attention(%q: !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable>, %zero: tensor<64x64xf32, #mma>, %n: i32) -> tensor<64x64xf32, #mma> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %b = ttg.local_alloc : () -> !ttg.memdesc<3x64x64xf16, #shared, #ttg.shared_memory, mutable>
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %slot = %c0) -> (tensor<64x64xf32, #mma>, i32) : i32 {
    %t = ttg.async_wait
    %s = ttg.memdesc_subview %b[%slot, %c0, %c0] : !ttg.memdesc<3x64x64xf16, #shared, #ttg.shared_memory, mutable> -> !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable>
    %d = tt.dot %q, %s, %zero : !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable> * !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable> -> tensor<64x64xf32, #mma>
    %p = math.exp2 %d : tensor<64x64xf32, #mma>
    %h = arith.truncf %p : tensor<64x64xf32, #mma> to tensor<64x64xf16, #mma>
    %l = ttg.convert_layout %h : tensor<64x64xf16, #mma> -> tensor<64x64xf16, #left>
    %scaled = arith.mulf %acc, %p : tensor<64x64xf32, #mma>
    %o = tt.dot %l, %s, %scaled : tensor<64x64xf16, #left> * !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable> -> tensor<64x64xf32, #mma>
    %next = arith.addi %slot, %c1 : i32
    scf.yield %o, %next : tensor<64x64xf32, #mma>, i32
  } {"ttg.slots-kept" = 1 : i32}
  %u = ttg.async_wait
  tt.return %r#0 : tensor<64x64xf32, #mma>
}
}
