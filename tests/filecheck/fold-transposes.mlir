// RUN: mltriton opt %s -p fold-transposes,canonicalize,dce | filecheck %s
// A block that is only used transposed comes through a block pointer with sizes, strides and offsets exchanged.

// CHECK-LABEL: @descriptor
// CHECK-DAG: %[[ROWS:.*]] = arith.extsi %m : i32 to i64
// CHECK-DAG: %[[COLUMNS:.*]] = arith.extsi %n : i32 to i64
// CHECK: %[[P:.*]] = tt.make_tensor_ptr %x, [%[[COLUMNS]], %[[ROWS]]], [%one, %s], [%j, %i] {order = array<i32: 0, 1>} : <tensor<64x32xf16>>
// CHECK: %[[V:.*]] = tt.load %[[P]] {boundaryCheck = array<i32: 0, 1>, padding = 1 : i32} : !tt.ptr<tensor<64x32xf16>>
// CHECK-NOT: tt.trans
// CHECK: tt.return %[[V]]
tt.func @descriptor(%x: !tt.ptr<f16>, %m: i32, %n: i32, %s: i64, %i: i32, %j: i32) -> tensor<64x32xf16> {
  %one = arith.constant 1 : i64
  %d = tt.make_tensor_descriptor %x, [%m, %n], [%s, %one] : <f16>, <tensor<32x64xf16>>
  %v = tt.descriptor_load %d[%i, %j] : !tt.tensordesc<tensor<32x64xf16>> -> tensor<32x64xf16>
  %t = tt.trans %v {order = array<i32: 1, 0>} : tensor<32x64xf16> -> tensor<64x32xf16>
  tt.return %t : tensor<64x32xf16>
}

// CHECK-LABEL: @block_pointer
// CHECK: tt.make_tensor_ptr %x, [%n, %m], [%one, %s], [%j, %i] {order = array<i32: 0, 1>} : <tensor<64x32xf16>>
// CHECK: tt.load %{{.*}} {boundaryCheck = array<i32: 1>}
// CHECK-NOT: tt.trans
tt.func @block_pointer(%x: !tt.ptr<f16>, %m: i64, %n: i64, %s: i64, %i: i32, %j: i32) -> tensor<64x32xf16> {
  %one = arith.constant 1 : i64
  %p = tt.make_tensor_ptr %x, [%m, %n], [%s, %one], [%i, %j] {order = array<i32: 1, 0>} : <tensor<32x64xf16>>
  %v = tt.load %p {boundaryCheck = array<i32: 0>} : !tt.ptr<tensor<32x64xf16>>
  %t = tt.trans %v {order = array<i32: 1, 0>} : tensor<32x64xf16> -> tensor<64x32xf16>
  tt.return %t : tensor<64x32xf16>
}

// A block that is used as it is, too, is loaded once.
// CHECK-LABEL: @both
// CHECK: tt.descriptor_load
// CHECK: tt.trans
tt.func @both(%d: !tt.tensordesc<tensor<32x32xf16>>, %i: i32) -> tensor<32x32xf16> {
  %v = tt.descriptor_load %d[%i, %i] : !tt.tensordesc<tensor<32x32xf16>> -> tensor<32x32xf16>
  %t = tt.trans %v {order = array<i32: 1, 0>} : tensor<32x32xf16> -> tensor<32x32xf16>
  %r = arith.addf %v, %t : tensor<32x32xf16>
  tt.return %r : tensor<32x32xf16>
}
