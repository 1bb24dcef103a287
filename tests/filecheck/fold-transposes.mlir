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

// What is made of a dot is stored through a block pointer with dimensions exchanged, not transposed before.
// CHECK-LABEL: @product
// CHECK: %[[D:.*]] = tt.dot
// CHECK: %[[P:.*]] = tt.make_tensor_ptr %x, [%{{.*}}, %{{.*}}], [%one, %s], [%j, %i] {order = array<i32: 0, 1>} : <tensor<32x64xf16>>
// CHECK-NOT: tt.trans
// CHECK: %[[V:.*]] = arith.truncf %[[D]] : tensor<32x64xf32> to tensor<32x64xf16>
// CHECK: tt.store %[[P]], %[[V]] {boundaryCheck = array<i32: 0, 1>} : !tt.ptr<tensor<32x64xf16>>
tt.func @product(%x: !tt.ptr<f16>, %a: tensor<32x16xf16>, %b: tensor<16x64xf16>, %c: tensor<32x64xf32>, %m: i32, %s: i64, %i: i32, %j: i32) {
  %one = arith.constant 1 : i64
  %out = tt.make_tensor_descriptor %x, [%m, %m], [%s, %one] : <f16>, <tensor<64x32xf16>>
  %d = tt.dot %a, %b, %c : tensor<32x16xf16> * tensor<16x64xf16> -> tensor<32x64xf32>
  %t = tt.trans %d {order = array<i32: 1, 0>} : tensor<32x64xf32> -> tensor<64x32xf32>
  %v = arith.truncf %t : tensor<64x32xf32> to tensor<64x32xf16>
  tt.descriptor_store %out[%i, %j], %v : !tt.tensordesc<tensor<64x32xf16>>, tensor<64x32xf16>
  tt.return
}

// What is no product is transposed in the registers.
// CHECK-LABEL: @no_product
// CHECK: tt.trans
// CHECK: tt.descriptor_store
tt.func @no_product(%out: !tt.tensordesc<tensor<64x32xf16>>, %v: tensor<32x64xf16>, %i: i32) {
  %t = tt.trans %v {order = array<i32: 1, 0>} : tensor<32x64xf16> -> tensor<64x32xf16>
  tt.descriptor_store %out[%i, %i], %t : !tt.tensordesc<tensor<64x32xf16>>, tensor<64x32xf16>
  tt.return
}
