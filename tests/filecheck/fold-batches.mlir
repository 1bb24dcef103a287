// RUN: mltriton opt %s -p "fold-batches,dce" | filecheck %s
// The batch goes into the base pointer; outside the batches no row is inside.

// CHECK: %[[Z:.*]] = arith.extsi %z
// CHECK: %[[BY:.*]] = arith.muli %[[Z]], %stride
// CHECK: %[[BASE:.*]] = tt.addptr %p, %[[BY]]
// CHECK: tt.make_tensor_descriptor %[[BASE]], [%{{.*}}, %n], [%row, %one] : <f16>, <tensor<16x32xf16>>
// CHECK: tt.descriptor_load %{{.*}}[%m, %k] : !tt.tensordesc<tensor<16x32xf16>> -> tensor<16x32xf16>
// CHECK-NOT: 1x16x32
tt.func public @load(%p: !tt.ptr<f16>, %b: i32, %rows: i32, %n: i32, %stride: i64, %row: i64, %one: i64, %z: i32, %m: i32, %k: i32) {
  %desc = tt.make_tensor_descriptor %p, [%b, %rows, %n], [%stride, %row, %one] : <f16>, <tensor<1x16x32xf16>>
  %x = tt.descriptor_load %desc[%z, %m, %k] : !tt.tensordesc<tensor<1x16x32xf16>> -> tensor<1x16x32xf16>
  tt.descriptor_store %desc[%z, %m, %k], %x : !tt.tensordesc<tensor<1x16x32xf16>>, tensor<1x16x32xf16>
  tt.return
}
