// RUN: mltriton opt %s -p "assign-layouts,cse,assign-lanes,dce,specialize-warps,dce,canonicalize,cse,start-dots" | filecheck %s
// 64 columns and 16 more are multiplied by the same rows: in each slot the rows of memory of one right operand follow
// those of the other, so that one instruction can do both (`targets/nvidia/joined.py`).

// CHECK-LABEL: @narrow
// CHECK: %[[A:.*]] = ttg.local_alloc : () -> !ttg.memdesc<3x64x64xf16,
// CHECK: %[[B:.*]] = ttg.local_alloc : () -> !ttg.memdesc<3x80x64xf16,
// CHECK: ttg.local_alloc : () -> !ttg.memdesc<3x1xi64,
// CHECK: ttg.warp_specialize default {
// CHECK: %[[X:.*]] = ttg.memdesc_subview %[[A]][%[[SLOT:.*]], %c0, %c0]
// CHECK: %[[Y:.*]] = ttg.memdesc_subview %[[B]][%[[SLOT]], %c0, %c0]{{.*}} -> !ttg.memdesc<64x64xf16
// CHECK: ttg.memdesc_trans %[[Y]]
// CHECK: %[[Z:.*]] = ttg.memdesc_subview %[[B]][%[[SLOT]], %c64, %c0]{{.*}} -> !ttg.memdesc<16x64xf16
// CHECK: ttg.memdesc_trans %[[Z]]
// CHECK: ttng.warp_group_dot %[[X]],
// CHECK: ttng.warp_group_dot %[[X]],
// CHECK: partition num_warps(4) {
// CHECK: ttng.barrier_expect %{{.*}}, 18432 :
// CHECK: %[[Z:.*]] = ttg.memdesc_subview %[[B]][%{{.*}}, %c64, %c0]{{.*}} -> !ttg.memdesc<16x64xf16
// CHECK: ttng.async_tma_copy_global_to_local %dm[%{{.*}}, %{{.*}}] %[[Z]]
// An operand of 64 columns takes as long to multiply as to read: it has memory of its own.
// CHECK-LABEL: @wide
// CHECK: ttg.local_alloc : () -> !ttg.memdesc<3x64x64xf16,
// CHECK: ttg.local_alloc : () -> !ttg.memdesc<3x64x64xf16,
// CHECK: ttg.local_alloc : () -> !ttg.memdesc<3x64x64xf16,
module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.specialize-warps" = "all"} {
tt.func public @narrow(%a: !tt.ptr<f16>, %b: !tt.ptr<f16>, %c: !tt.ptr<f32>, %n: i64, %i: i32, %j: i32, %steps: i32) {
  %cst = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
  %none = arith.constant dense<0.000000e+00> : tensor<64x16xf32>
  %one = arith.constant 1 : i64
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %da = ttng.tensor_map %a, [%n, %n], [%n, %one] : <f16>, <tensor<64x64xf16>>
  %db = ttng.tensor_map %b, [%n, %n], [%n, %one] : <f16>, <tensor<64x64xf16>>
  %dm = ttng.tensor_map %b, [%n, %n], [%n, %one] : <f16>, <tensor<16x64xf16>>
  %dc = ttng.tensor_map %c, [%n, %n], [%n, %one] : <f32>, <tensor<64x64xf32>>
  %do = ttng.tensor_map %c, [%n, %n], [%n, %one] : <f32>, <tensor<64x16xf32>>
  %k2 = arith.addi %j, %c64 : i32
  %sum, %more = scf.for %k = %c0 to %steps step %c64 iter_args(%acc = %cst, %also = %none) -> (tensor<64x64xf32>, tensor<64x16xf32>) : i32 {
    %x = tt.descriptor_load %da[%i, %k] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>
    %y = tt.descriptor_load %db[%j, %k] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>
    %m = tt.descriptor_load %dm[%k2, %k] : !tt.tensordesc<tensor<16x64xf16>> -> tensor<16x64xf16>
    %t = tt.trans %y {order = array<i32: 1, 0>} : tensor<64x64xf16> -> tensor<64x64xf16>
    %u = tt.trans %m {order = array<i32: 1, 0>} : tensor<16x64xf16> -> tensor<64x16xf16>
    %z = tt.dot %x, %t, %acc : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
    %v = tt.dot %x, %u, %also : tensor<64x64xf16> * tensor<64x16xf16> -> tensor<64x16xf32>
    scf.yield %z, %v : tensor<64x64xf32>, tensor<64x16xf32>
  }
  tt.descriptor_store %dc[%i, %j], %sum : !tt.tensordesc<tensor<64x64xf32>>, tensor<64x64xf32>
  tt.descriptor_store %do[%i, %k2], %more : !tt.tensordesc<tensor<64x16xf32>>, tensor<64x16xf32>
  tt.return
}
tt.func public @wide(%a: !tt.ptr<f16>, %b: !tt.ptr<f16>, %c: !tt.ptr<f32>, %n: i64, %i: i32, %j: i32, %steps: i32) {
  %cst = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
  %none = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
  %one = arith.constant 1 : i64
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %da = ttng.tensor_map %a, [%n, %n], [%n, %one] : <f16>, <tensor<64x64xf16>>
  %db = ttng.tensor_map %b, [%n, %n], [%n, %one] : <f16>, <tensor<64x64xf16>>
  %dm = ttng.tensor_map %b, [%n, %n], [%n, %one] : <f16>, <tensor<64x64xf16>>
  %dc = ttng.tensor_map %c, [%n, %n], [%n, %one] : <f32>, <tensor<64x64xf32>>
  %do = ttng.tensor_map %c, [%n, %n], [%n, %one] : <f32>, <tensor<64x64xf32>>
  %k2 = arith.addi %j, %c64 : i32
  %sum, %more = scf.for %k = %c0 to %steps step %c64 iter_args(%acc = %cst, %also = %none) -> (tensor<64x64xf32>, tensor<64x64xf32>) : i32 {
    %x = tt.descriptor_load %da[%i, %k] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>
    %y = tt.descriptor_load %db[%j, %k] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>
    %m = tt.descriptor_load %dm[%k2, %k] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>
    %t = tt.trans %y {order = array<i32: 1, 0>} : tensor<64x64xf16> -> tensor<64x64xf16>
    %u = tt.trans %m {order = array<i32: 1, 0>} : tensor<64x64xf16> -> tensor<64x64xf16>
    %z = tt.dot %x, %t, %acc : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
    %v = tt.dot %x, %u, %also : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %z, %v : tensor<64x64xf32>, tensor<64x64xf32>
  }
  tt.descriptor_store %dc[%i, %j], %sum : !tt.tensordesc<tensor<64x64xf32>>, tensor<64x64xf32>
  tt.descriptor_store %do[%i, %k2], %more : !tt.tensordesc<tensor<64x64xf32>>, tensor<64x64xf32>
  tt.return
}
}
