// RUN: mltriton opt %s -p hoist-transposes,dce | filecheck %s
// A transpose behind masks and arithmetic comes right behind the load; masks are made transposed.

// CHECK-LABEL: @masked
// CHECK: %[[V:.*]] = tt.descriptor_load
// CHECK: %[[ROWS:.*]] = tt.expand_dims %m {axis = 1 : i32}
// CHECK: %[[MASK:.*]] = tt.broadcast %[[ROWS]] : tensor<64x1xi1> -> tensor<64x32xi1>
// CHECK: %[[T:.*]] = tt.trans %[[V]]
// CHECK: %[[S:.*]] = arith.select %[[MASK]], %[[T]], %{{.*}} : tensor<64x32xi1>, tensor<64x32xf16>
// CHECK: %[[R:.*]] = arith.mulf %[[S]], %{{.*}} : tensor<64x32xf16>
// CHECK-NOT: tt.trans
// CHECK: tt.return %[[R]]
tt.func @masked(%d: !tt.tensordesc<tensor<32x64xf16>>, %i: i32, %m: tensor<64xi1>, %f: f16) -> tensor<64x32xf16> {
  %zero = arith.constant dense<0.0> : tensor<32x64xf16>
  %v = tt.descriptor_load %d[%i, %i] : !tt.tensordesc<tensor<32x64xf16>> -> tensor<32x64xf16>
  %c = tt.expand_dims %m {axis = 0 : i32} : tensor<64xi1> -> tensor<1x64xi1>
  %b = tt.broadcast %c : tensor<1x64xi1> -> tensor<32x64xi1>
  %s = arith.select %b, %v, %zero : tensor<32x64xi1>, tensor<32x64xf16>
  %g = tt.splat %f : f16 -> tensor<32x64xf16>
  %p = arith.mulf %s, %g : tensor<32x64xf16>
  %t = tt.trans %p {order = array<i32: 1, 0>} : tensor<32x64xf16> -> tensor<64x32xf16>
  tt.return %t : tensor<64x32xf16>
}

// Rows that are gathered for a product are loaded transposed, before what follows the load.
// CHECK-LABEL: @gathered
// CHECK: tt.expand_dims %{{.*}} {axis = 0 : i32} : tensor<16xi64> -> tensor<1x16xi64>
// CHECK: tt.expand_dims %{{.*}} {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
// CHECK: %[[K:.*]] = tt.load %{{.*}} : tensor<64x16x!tt.ptr<f16>>
// CHECK: tt.store
// CHECK-NOT: tt.trans
// CHECK: tt.dot %q, %[[K]]
tt.func @gathered(%x: !tt.ptr<f16>, %r: tensor<16xi64>, %q: tensor<16x64xf16>, %c: tensor<16x16xf32>, %y: !tt.ptr<i32>, %one: i32) -> tensor<16x16xf32> {
  %e = tt.expand_dims %r {axis = 1 : i32} : tensor<16xi64> -> tensor<16x1xi64>
  %s = tt.splat %x : !tt.ptr<f16> -> tensor<16x1x!tt.ptr<f16>>
  %a = tt.addptr %s, %e : tensor<16x1x!tt.ptr<f16>>, tensor<16x1xi64>
  %b = tt.broadcast %a : tensor<16x1x!tt.ptr<f16>> -> tensor<16x64x!tt.ptr<f16>>
  %d = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %f = tt.expand_dims %d {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %g = tt.broadcast %f : tensor<1x64xi32> -> tensor<16x64xi32>
  %p = tt.addptr %b, %g : tensor<16x64x!tt.ptr<f16>>, tensor<16x64xi32>
  %k = tt.load %p : tensor<16x64x!tt.ptr<f16>>
  tt.store %y, %one : !tt.ptr<i32>
  %t = tt.trans %k {order = array<i32: 1, 0>} : tensor<16x64xf16> -> tensor<64x16xf16>
  %o = tt.dot %q, %t, %c : tensor<16x64xf16> * tensor<64x16xf16> -> tensor<16x16xf32>
  tt.return %o : tensor<16x16xf32>
}

// What is used as it is, too, is not loaded twice; nor does a block that no dot takes come through other pointers.
// CHECK-LABEL: @both
// CHECK: tt.load %p : tensor<32x32x!tt.ptr<f16>>
// CHECK: arith.negf
// CHECK: tt.trans
tt.func @both(%p: tensor<32x32x!tt.ptr<f16>>) -> tensor<32x32xf16> {
  %v = tt.load %p : tensor<32x32x!tt.ptr<f16>>
  %n = arith.negf %v : tensor<32x32xf16>
  %t = tt.trans %n {order = array<i32: 1, 0>} : tensor<32x32xf16> -> tensor<32x32xf16>
  %r = arith.addf %n, %t : tensor<32x32xf16>
  tt.return %r : tensor<32x32xf16>
}
