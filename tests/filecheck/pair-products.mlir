// RUN: mltriton opt %s -p "pair-products" | filecheck %s
// Both halves of a product come of one multiplication.
module {
// CHECK-LABEL: @halves
// CHECK-DAG: [[A:%.*]] = arith.extui %a : tensor<16xi32> to tensor<16xi64>
// CHECK-DAG: [[B:%.*]] = arith.extui %b
// CHECK: [[WHOLE:%.*]] = arith.muli [[A]], [[B]] : tensor<16xi64>
// CHECK: [[UPPER:%.*]] = arith.shrui [[WHOLE]]
// CHECK: [[HIGH:%.*]] = arith.trunci [[UPPER]] : tensor<16xi64> to tensor<16xi32>
// CHECK: [[LOW:%.*]] = arith.trunci [[WHOLE]]
// CHECK-NOT: mul
// CHECK: tt.return [[LOW]], [[HIGH]]
tt.func public @halves(%a: tensor<16xi32>, %b: tensor<16xi32>) -> (tensor<16xi32>, tensor<16xi32>) {
  %0 = arith.muli %b, %a : tensor<16xi32>
  %1 = tt.mulhiui %a, %b : tensor<16xi32>
  tt.return %0, %1 : tensor<16xi32>, tensor<16xi32>
}
// Halves of different products stay, and so do those of 64 bits.
// CHECK-LABEL: @others
// CHECK-NOT: extui
tt.func public @others(%a: i32, %b: i32, %x: i64) -> (i32, i32, i64, i64) {
  %0 = tt.mulhiui %a, %b : i32
  %1 = arith.muli %a, %a : i32
  %2 = tt.mulhiui %x, %x : i64
  %3 = arith.muli %x, %x : i64
  tt.return %0, %1, %2, %3 : i32, i32, i64, i64
}
}
