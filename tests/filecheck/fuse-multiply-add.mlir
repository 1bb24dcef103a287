// RUN: mltriton opt %s -p "fuse-multiply-add,dce" | filecheck %s
// A product that one sum or difference takes is rounded with it, once.
module {
// CHECK-LABEL: @sums
// CHECK-NOT: arith.mulf
// CHECK: math.fma %a, %b, %c : tensor<16xf32>
// CHECK: math.fma %b, %c, %a : tensor<16xf32>
// CHECK: [[OPPOSITE:%.*]] = arith.negf %b
// CHECK: math.fma %a, %c, [[OPPOSITE]]
// CHECK: [[FACTOR:%.*]] = arith.negf %a
// CHECK: math.fma [[FACTOR]], %a, %b
tt.func public @sums(%a: tensor<16xf32>, %b: tensor<16xf32>, %c: tensor<16xf32>) -> (tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) {
  %0 = arith.mulf %a, %b : tensor<16xf32>
  %1 = arith.addf %0, %c : tensor<16xf32>
  %2 = arith.mulf %b, %c : tensor<16xf32>
  %3 = arith.addf %a, %2 : tensor<16xf32>
  %4 = arith.mulf %a, %c : tensor<16xf32>
  %5 = arith.subf %4, %b : tensor<16xf32>
  %6 = arith.mulf %a, %a : tensor<16xf32>
  %7 = arith.subf %b, %6 : tensor<16xf32>
  tt.return %1, %3, %5, %7 : tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>
}
// What powers are taken of.
// CHECK-LABEL: @powers
// CHECK-NOT: math.fma
// CHECK: math.exp2
tt.func public @powers(%x: tensor<16xf32>, %scale: tensor<16xf32>, %largest: tensor<16xf32>) -> tensor<16xf32> {
  %0 = arith.mulf %x, %scale : tensor<16xf32>
  %1 = arith.subf %0, %largest : tensor<16xf32>
  %2 = math.exp2 %1 : tensor<16xf32>
  tt.return %2 : tensor<16xf32>
}
// A product that is taken elsewhere, too, keeps its rounding; so do narrower floats, and products outside of the loop.
// CHECK-LABEL: @others
// CHECK-NOT: math.fma
// CHECK: tt.return
tt.func public @others(%a: f64, %b: f64, %x: f16, %n: index) -> (f64, f64, f16, f64) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %0 = arith.mulf %a, %b : f64
  %1 = arith.addf %0, %a : f64
  %2 = arith.subf %1, %0 : f64
  %3 = arith.mulf %x, %x : f16
  %4 = arith.addf %3, %x : f16
  %5 = arith.mulf %a, %a : f64
  %6 = scf.for %i = %zero to %n step %one iter_args(%sum = %b) -> (f64) {
    %7 = arith.addf %sum, %5 : f64
    scf.yield %7 : f64
  }
  tt.return %1, %2, %4, %6 : f64, f64, f16, f64
}
}
