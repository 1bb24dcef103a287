// RUN: mltriton opt %s -p "assign-layouts,cse,assign-lanes,dce,specialize-warps" | filecheck %s
// Nobody asks for a producer, but blocks would come late, so there is one, and programs have a multiprocessor each. Two
// would share it without: the module says so, for launches that are one round of them.

// CHECK-DAG: "ttg.programs-in-one-round" = 2 : i32
// CHECK-DAG: "ttg.total-num-warps" = 12 : i32
// CHECK-LABEL: @product
// CHECK: ttg.local_alloc : () -> !ttg.memdesc<4x128x64xf16,
// CHECK: ttg.warp_specialize default {
module attributes {"ttg.num-stages" = 3 : i32, "ttg.num-warps" = 8 : i32, ttg.target = "cuda:90", "ttg.specialize-warps" = "auto"} {
tt.func public @product(%a: !tt.ptr<f16>, %b: !tt.ptr<f16>, %c: !tt.ptr<f32>, %n: i64, %i: i32, %j: i32, %steps: i32) {
  %cst = arith.constant dense<0.000000e+00> : tensor<128x128xf32>
  %one = arith.constant 1 : i64
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %da = ttng.tensor_map %a, [%n, %n], [%n, %one] : <f16>, <tensor<128x64xf16>>
  %db = ttng.tensor_map %b, [%n, %n], [%n, %one] : <f16>, <tensor<128x64xf16>>
  %dc = ttng.tensor_map %c, [%n, %n], [%n, %one] : <f32>, <tensor<128x128xf32>>
  %sum = scf.for %k = %c0 to %steps step %c64 iter_args(%acc = %cst) -> (tensor<128x128xf32>) : i32 {
    %x = tt.descriptor_load %da[%i, %k] : !tt.tensordesc<tensor<128x64xf16>> -> tensor<128x64xf16>
    %y = tt.descriptor_load %db[%j, %k] : !tt.tensordesc<tensor<128x64xf16>> -> tensor<128x64xf16>
    %t = tt.trans %y {order = array<i32: 1, 0>} : tensor<128x64xf16> -> tensor<64x128xf16>
    %z = tt.dot %x, %t, %acc : tensor<128x64xf16> * tensor<64x128xf16> -> tensor<128x128xf32>
    scf.yield %z : tensor<128x128xf32>
  }
  tt.descriptor_store %dc[%i, %j], %sum : !tt.tensordesc<tensor<128x128xf32>>, tensor<128x128xf32>
  tt.return
}
}
