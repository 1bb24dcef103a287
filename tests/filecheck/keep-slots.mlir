// RUN: mltriton opt %s -p "assign-layouts,cse,assign-lanes,dce,specialize-warps,copy-blocks,dce,canonicalize,cse,keep-slots,canonicalize,cse,start-dots" | filecheck %s
// A product goes on into the next iteration, so that its slot is given back there, and the last one behind the loop. A
// product whose result the iteration takes is waited for at once, and its slot goes back then.

// CHECK-LABEL: @product
// CHECK: %[[EMPTY:.*]] = ttg.local_alloc : () -> !ttg.memdesc<3x1xi64,
// CHECK: %[[EMPTY:.*]] = ttg.local_alloc : () -> !ttg.memdesc<3x1xi64,
// CHECK: ttg.warp_specialize default {
// CHECK: %[[TOTAL:.*]], %{{.*}}, %{{.*}}, %[[LAST:.*]] = scf.for %[[K:.*]] = %c0 to %steps {{.*}} iter_args(%[[SUM:.*]] = %{{.*}}, %[[SLOT:.*]] = %c0, %[[PARITY:.*]] = %c0, %[[BEFORE:.*]] = %c0)
// CHECK: %[[D:.*]] = ttng.warp_group_dot %{{.*}}, %{{.*}}, %[[SUM]] {isAsync = true}
// CHECK: %[[BEGAN:.*]] = arith.cmpi slt, %c0, %[[K]]
// CHECK: %[[FREE:.*]] = ttg.memdesc_subview %[[EMPTY]][%[[BEFORE]], %c0]
// CHECK-NEXT: ttng.warp_group_dot_wait %[[D]] {pendings = 1 : i32}
// CHECK-NEXT: ttng.arrive_barrier %[[FREE]], 4, %[[BEGAN]] :
// CHECK: scf.yield {{.*}}, %[[SLOT]] :
// CHECK: ttng.warp_group_dot_wait %[[TOTAL]] :
// CHECK: %[[ANY:.*]] = arith.cmpi slt, %c0, %steps
// CHECK: ttg.memdesc_subview %[[EMPTY]][%[[LAST]], %c0]
// CHECK-NEXT: ttng.arrive_barrier %{{.*}}, 4, %[[ANY]] :
// CHECK: partition

// CHECK-LABEL: @doubled
// CHECK: ttng.warp_group_dot_wait %{{.*}} :
// CHECK: ttng.arrive_barrier %{{.*}}, 4 :
// CHECK: scf.yield
// CHECK-NOT: ttng.arrive_barrier
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
tt.func public @doubled(%a: !tt.ptr<f16>, %b: !tt.ptr<f16>, %c: !tt.ptr<f32>, %n: i64, %i: i32, %j: i32, %steps: i32) {
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
    %w = arith.addf %z, %z : tensor<64x64xf32>
    scf.yield %w : tensor<64x64xf32>
  }
  tt.descriptor_store %dc[%i, %j], %sum : !tt.tensordesc<tensor<64x64xf32>>, tensor<64x64xf32>
  tt.return
}
}
