// RUN: mltriton opt %s -p "assign-layouts,cse,assign-lanes,dce,pipeline-loads{stages=3},copy-blocks,dce,canonicalize,cse,start-dots" | filecheck %s
// Two programs with three buffers each fit beside each other, with a fourth buffer only one would. So copies start at the
// end of an iteration, two iterations ahead, when all warps have waited for the product of the iteration before.

// CHECK-LABEL: @product
// CHECK: ttg.local_alloc : () -> !ttg.memdesc<3x128x64xf16
// CHECK: %[[BARRIERS:.*]] = ttg.local_alloc : () -> !ttg.memdesc<3x1xi64
// CHECK: scf.for {{.*}} iter_args(%[[SUM:.*]] = %{{.*}}, %[[SLOT:.*]] = %c0, %[[PARITY:.*]] = %c0)
// CHECK: %[[NOW:.*]] = ttg.memdesc_subview %[[BARRIERS]][%[[SLOT]], %c0]
// CHECK-NEXT: ttng.wait_barrier %[[NOW]], %[[PARITY]]
// CHECK-NOT: ttg.async_wait
// CHECK: %[[STARTED:.*]] = ttng.warp_group_dot %{{.*}}, %{{.*}}, %[[SUM]] {isAsync = true}
// CHECK-NEXT: ttng.warp_group_dot_wait %[[STARTED]] {pendings = 1 : i32}
// CHECK-NEXT: gpu.barrier
// CHECK: %[[LATER:.*]] = arith.addi %[[SLOT]], %c2
// CHECK: ttng.barrier_expect %{{.*}}, 32768
// CHECK-COUNT-2: ttng.async_tma_copy_global_to_local
// CHECK-NEXT: scf.yield
// CHECK: ttng.warp_group_dot_wait
// CHECK: gpu.barrier
// CHECK-COUNT-3: ttng.inval_barrier
module attributes {"ttg.num-warps" = 8 : i32, ttg.target = "cuda:90"} {
tt.func public @product(%a: !tt.ptr<f16>, %b: !tt.ptr<f16>, %c: !tt.ptr<f32>, %n: i64, %i: i32, %j: i32, %steps: i32) {
  %cst = arith.constant dense<0.000000e+00> : tensor<128x128xf32>
  %one = arith.constant 1 : i64
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %da = ttng.tensor_map %a, [%n, %n], [%n, %one] : <f16>, <tensor<128x64xf16>>
  %db = ttng.tensor_map %b, [%n, %n], [%n, %one] : <f16>, <tensor<64x128xf16>>
  %dc = ttng.tensor_map %c, [%n, %n], [%n, %one] : <f32>, <tensor<128x128xf32>>
  %sum = scf.for %k = %c0 to %steps step %c64 iter_args(%acc = %cst) -> (tensor<128x128xf32>) : i32 {
    %x = tt.descriptor_load %da[%i, %k] : !tt.tensordesc<tensor<128x64xf16>> -> tensor<128x64xf16>
    %y = tt.descriptor_load %db[%k, %j] : !tt.tensordesc<tensor<64x128xf16>> -> tensor<64x128xf16>
    %z = tt.dot %x, %y, %acc : tensor<128x64xf16> * tensor<64x128xf16> -> tensor<128x128xf32>
    scf.yield %z : tensor<128x128xf32>
  }
  tt.descriptor_store %dc[%i, %j], %sum : !tt.tensordesc<tensor<128x128xf32>>, tensor<128x128xf32>
  tt.return
}
}
