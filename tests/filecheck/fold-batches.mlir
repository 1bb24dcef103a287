// RUN: mltriton opt %s -p "fold-batches,dce" | filecheck %s
// The batch goes into the base pointer; outside the batches the place is before the matrix, along the dimension in
// which a loop does not move.

// CHECK: tt.func public @load
// CHECK-DAG: %[[Z:.*]] = arith.extsi %z
// CHECK-DAG: %[[BY:.*]] = arith.muli %[[Z]], %stride
// CHECK-DAG: %[[BASE:.*]] = tt.addptr %p, %[[BY]]
// CHECK-DAG: %[[INSIDE:.*]] = arith.cmpi ult, %z, %b
// CHECK-DAG: %[[ROW:.*]] = arith.select %[[INSIDE]], %m, %c-1048576
// CHECK: tt.make_tensor_descriptor %[[BASE]], [%rows, %n], [%row, %one] : <f16>, <tensor<16x32xf16>>
// CHECK: tt.descriptor_load %{{.*}}[%[[ROW]], %k] : !tt.tensordesc<tensor<16x32xf16>> -> tensor<16x32xf16>
// CHECK-NOT: 1x16x32
tt.func public @load(%p: !tt.ptr<f16>, %b: i32, %rows: i32, %n: i32, %stride: i64, %row: i64, %one: i64, %z: i32, %m: i32, %k: i32) {
  %desc = tt.make_tensor_descriptor %p, [%b, %rows, %n], [%stride, %row, %one] : <f16>, <tensor<1x16x32xf16>>
  %x = tt.descriptor_load %desc[%z, %m, %k] : !tt.tensordesc<tensor<1x16x32xf16>> -> tensor<1x16x32xf16>
  tt.descriptor_store %desc[%z, %m, %k], %x : !tt.tensordesc<tensor<1x16x32xf16>>, tensor<1x16x32xf16>
  tt.return
}

// CHECK: tt.func public @rows_move
// CHECK: scf.for %k
// CHECK: %[[COLUMN:.*]] = arith.select %{{.*}}, %n, %c-1048576
// CHECK: tt.descriptor_load %{{.*}}[%k, %[[COLUMN]]]
tt.func public @rows_move(%p: !tt.ptr<f16>, %b: i32, %rows: i32, %stride: i64, %row: i64, %one: i64, %z: i32, %n: i32, %from: i32, %to: i32, %by: i32) {
  %desc = tt.make_tensor_descriptor %p, [%b, %rows, %rows], [%stride, %row, %one] : <f16>, <tensor<1x16x32xf16>>
  scf.for %k = %from to %to step %by : i32 {
    %x = tt.descriptor_load %desc[%z, %k, %n] : !tt.tensordesc<tensor<1x16x32xf16>> -> tensor<1x16x32xf16>
    tt.descriptor_store %desc[%z, %k, %n], %x : !tt.tensordesc<tensor<1x16x32xf16>>, tensor<1x16x32xf16>
  }
  tt.return
}

// Nothing advances this block pointer along its columns, though it moves along rows; the other one moves along both,
// and its matrix has no rows.
// CHECK: tt.func public @pointers
// CHECK: tt.make_tensor_ptr %{{.*}}, [%s, %s], [%row, %one], [%c0_i32, %[[INSIDE:.*]]]
// CHECK: %[[NONE:.*]] = arith.select %{{.*}}, %s, %c0_i64
// CHECK: tt.make_tensor_ptr %{{.*}}, [%[[NONE]], %s], [%row, %one], [%c0_i32, %c0_i32]
tt.func public @pointers(%p: !tt.ptr<f16>, %s: i64, %row: i64, %one: i64, %z: i32, %by: i32) {
  %c0_i32 = arith.constant 0 : i32
  %a = tt.make_tensor_ptr %p, [%s, %s, %s], [%row, %row, %one], [%z, %c0_i32, %c0_i32] {order = array<i32: 2, 1, 0>} : <tensor<1x16x32xf16>>
  %a1 = tt.advance %a, [%c0_i32, %by, %c0_i32] : <tensor<1x16x32xf16>>
  %x = tt.load %a1 {boundaryCheck = array<i32: 0, 1, 2>, padding = 1 : i32} : !tt.ptr<tensor<1x16x32xf16>>
  %b = tt.make_tensor_ptr %p, [%s, %s, %s], [%row, %row, %one], [%z, %c0_i32, %c0_i32] {order = array<i32: 2, 1, 0>} : <tensor<1x16x32xf16>>
  %b1 = tt.advance %b, [%c0_i32, %by, %by] : <tensor<1x16x32xf16>>
  tt.store %b1, %x {boundaryCheck = array<i32: 0, 1, 2>} : !tt.ptr<tensor<1x16x32xf16>>
  tt.return
}
