// RUN: mltriton opt %s -p "assign-layouts,cse,assign-lanes,dce,specialize-warps,copy-blocks,dce,canonicalize,cse,start-dots" | filecheck %s
// A warp of its own waits for a free slot and starts the copies of both operands; the others wait for these, multiply,
// and give the slot back. The sum's memory is needed by the program's own warps only, which meet without the producer.

// CHECK: "ttg.total-num-warps" = 8 : i32
// CHECK-LABEL: @product
// CHECK: %[[A:.*]] = ttg.local_alloc : () -> !ttg.memdesc<3x64x64xf16,
// CHECK: %[[B:.*]] = ttg.local_alloc : () -> !ttg.memdesc<3x64x64xf16,
// CHECK: %[[FULL:.*]] = ttg.local_alloc : () -> !ttg.memdesc<3x1xi64,
// CHECK: %[[EMPTY:.*]] = ttg.local_alloc : () -> !ttg.memdesc<3x1xi64,
// CHECK: ttg.memdesc_subview %[[FULL]][%c0,
// CHECK-NEXT: ttng.init_barrier %{{.*}}, 1 :
// CHECK: ttg.memdesc_subview %[[EMPTY]][%c0,
// CHECK-NEXT: ttng.init_barrier %{{.*}}, 4 :
// CHECK: ttng.fence_async_shared
// CHECK-NEXT: gpu.barrier
// CHECK-NEXT: ttg.warp_specialize default {
// CHECK: scf.for {{.*}} iter_args(%[[SUM:.*]] = %{{.*}}, %[[SLOT:.*]] = %c0, %[[PARITY:.*]] = %c0)
// CHECK-NEXT: %[[COME:.*]] = ttg.memdesc_subview %[[FULL]][%[[SLOT]], %c0]
// CHECK-NEXT: ttng.wait_barrier %[[COME]], %[[PARITY]]
// CHECK: %[[X:.*]] = ttg.memdesc_subview %[[A]][%[[SLOT]], %c0, %c0]
// CHECK: %[[D:.*]] = ttng.warp_group_dot %[[X]], %{{.*}}, %[[SUM]] {isAsync = true}
// CHECK-NEXT: %[[FREE:.*]] = ttg.memdesc_subview %[[EMPTY]][%[[SLOT]], %c0]
// CHECK-NEXT: ttng.warp_group_dot_wait %[[D]] :
// CHECK-NEXT: ttng.arrive_barrier %[[FREE]], 4 :
// CHECK: ttg.local_store
// CHECK: ttng.async_tma_copy_local_to_global
// CHECK: ttg.warp_yield
// CHECK-NEXT: } partition num_warps(4) {
// CHECK: scf.for %[[K:.*]] = {{.*}} iter_args(%[[SLOT:.*]] = %c0, %[[PARITY:.*]] = %c1_i32) -> (i32, i32)
// CHECK-NEXT: %[[FREE:.*]] = ttg.memdesc_subview %[[EMPTY]][%[[SLOT]], %c0]
// CHECK-NEXT: ttng.wait_barrier %[[FREE]], %[[PARITY]]
// CHECK-NEXT: %[[COME:.*]] = ttg.memdesc_subview %[[FULL]][%[[SLOT]], %c0]
// CHECK-NEXT: ttng.barrier_expect %[[COME]], 16384 :
// CHECK: ttng.async_tma_copy_global_to_local %da[%i, %[[K]]] %{{.*}}, %[[COME]]
// CHECK-NEXT: ttng.async_tma_copy_global_to_local %db[%j, %[[K]]] %{{.*}}, %[[COME]]
// CHECK: ttg.warp_return
module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.specialize-warps" = "all"} {
tt.func public @product(%a: !tt.ptr<f16>, %b: !tt.ptr<f16>, %c: !tt.ptr<f32>, %n: i64, %i: i32, %j: i32, %steps: i32) {
  %cst = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
  %one = arith.constant 1 : i64
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %da = ttng.tensor_map %a, [%n, %n], [%n, %one] : <f16>, <tensor<64x64xf16>>
  %db = ttng.tensor_map %b, [%n, %n], [%n, %one] : <f16>, <tensor<64x64xf16>>
  %dc = ttng.tensor_map %c, [%n, %n], [%n, %one] : <f32>, <tensor<64x64xf32>>
  %sum = scf.for %k = %c0 to %steps step %c64 iter_args(%acc = %cst) -> (tensor<64x64xf32>) : i32 {
    %x = tt.descriptor_load %da[%i, %k] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>
    %y = tt.descriptor_load %db[%j, %k] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>
    %t = tt.trans %y {order = array<i32: 1, 0>} : tensor<64x64xf16> -> tensor<64x64xf16>
    %z = tt.dot %x, %t, %acc : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %z : tensor<64x64xf32>
  }
  tt.descriptor_store %dc[%i, %j], %sum : !tt.tensordesc<tensor<64x64xf32>>, tensor<64x64xf32>
  tt.return
}
}
