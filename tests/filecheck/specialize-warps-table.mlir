// RUN: mltriton opt %s -p "hoist-descriptors,canonicalize,cse,assign-layouts,cse,assign-lanes,dce,specialize-warps,copy-blocks,dce,canonicalize,cse" | filecheck %s
// A producer looks up where blocks lie, in memory that the program does not write; of memory that it writes it cannot
// know what is there.

// CHECK-LABEL: @paged
// CHECK: ttg.warp_specialize default {
// CHECK: } partition num_warps(4) {
// CHECK: scf.for
// CHECK: %[[PAGE:.*]] = tt.load %{{.*}} : !tt.ptr<i32>
// CHECK: ttng.async_tma_copy_global_to_local %{{.*}}[%[[PAGE]], %{{.*}}]
// CHECK-LABEL: @written
// CHECK-NOT: ttg.warp_specialize
module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.specialize-warps" = "all"} {
tt.func public @paged(%a: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %table: !tt.ptr<i32>, %o: !tt.ptr<f32>, %n: i32, %t: i64, %steps: i32) {
  %cst = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
  %one = arith.constant 1 : i64
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %da = tt.make_tensor_descriptor %a, [%n, %n], [%t, %one] : <f16>, <tensor<64x64xf16>>
  %sum = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %cst) -> (tensor<64x64xf32>) : i32 {
    %at = tt.addptr %table, %k : !tt.ptr<i32>, i32
    %page = tt.load %at : !tt.ptr<i32>
    %x = tt.descriptor_load %da[%page, %c0] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>
    %z = tt.dot %x, %x, %acc : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %z : tensor<64x64xf32>
  }
  %to = tt.splat %o : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
  tt.store %to, %sum : tensor<64x64x!tt.ptr<f32>>
  tt.return
}
tt.func public @written(%a: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %table: !tt.ptr<i32>, %o: !tt.ptr<f32>, %n: i32, %t: i64, %steps: i32) {
  %cst = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
  %one = arith.constant 1 : i64
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %da = tt.make_tensor_descriptor %a, [%n, %n], [%t, %one] : <f16>, <tensor<64x64xf16>>
  %sum = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %cst) -> (tensor<64x64xf32>) : i32 {
    %at = tt.addptr %table, %k : !tt.ptr<i32>, i32
    %page = tt.load %at : !tt.ptr<i32>
    %x = tt.descriptor_load %da[%page, %c0] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>
    %z = tt.dot %x, %x, %acc : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
    tt.store %at, %k : !tt.ptr<i32>
    scf.yield %z : tensor<64x64xf32>
  }
  %to = tt.splat %o : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
  tt.store %to, %sum : tensor<64x64x!tt.ptr<f32>>
  tt.return
}
}
