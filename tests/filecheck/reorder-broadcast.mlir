// RUN: mltriton opt %s -p reorder-broadcast,dce | filecheck %s
// The product is computed on scalars and the sum on one column.

// CHECK-LABEL: @index
// CHECK: %[[P:.*]] = arith.muli %n, %n : i32
// CHECK: %[[S:.*]] = tt.splat %[[P]] : i32 -> tensor<16x1xi32>
// CHECK: %[[A:.*]] = arith.addi %{{.*}}, %[[S]] : tensor<16x1xi32>
// CHECK: tt.broadcast %[[A]] : tensor<16x1xi32> -> tensor<16x64xi32>
tt.func @index(%n: i32) -> tensor<16x64xi32> {
  %0 = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
  %1 = tt.expand_dims %0 {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %2 = tt.broadcast %1 : tensor<16x1xi32> -> tensor<16x64xi32>
  %3 = tt.splat %n : i32 -> tensor<16x64xi32>
  %4 = arith.muli %3, %3 : tensor<16x64xi32>
  %5 = arith.addi %2, %4 : tensor<16x64xi32>
  tt.return %5 : tensor<16x64xi32>
}

// A NaN that is written down stays one.

// CHECK-LABEL: @nan
// CHECK: %[[NAN:.*]] = arith.constant 0x7FC00000 : f32
// CHECK: arith.select %c, %[[NAN]], %x : f32
tt.func @nan(%c: i1, %x: f32) -> tensor<16xf32> {
  %0 = arith.constant dense<0x7FC00000> : tensor<16xf32>
  %1 = tt.splat %c : i1 -> tensor<16xi1>
  %2 = tt.splat %x : f32 -> tensor<16xf32>
  %3 = arith.select %1, %0, %2 : tensor<16xi1>, tensor<16xf32>
  tt.return %3 : tensor<16xf32>
}

// What is promised of addresses stays with them, and is not said of those that lie elsewhere.

// CHECK-LABEL: @promised
// CHECK-DAG: tt.addptr %{{.*}}, %{{.*}} {tt.divisibility = dense<16> : tensor<1xi32>} : tensor<64x!tt.ptr<f16>>
// CHECK-DAG: tt.addptr %{{.*}}, %{{.*}} : tensor<64x!tt.ptr<f16>>
tt.func @promised(%p: !tt.ptr<f16>) -> (tensor<64xf16>, tensor<64xf16>) {
  %one = arith.constant dense<1> : tensor<64xi32>
  %i = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %s = tt.splat %p : !tt.ptr<f16> -> tensor<64x!tt.ptr<f16>>
  %x = tt.addptr %s, %i {tt.divisibility = dense<16> : tensor<1xi32>} : tensor<64x!tt.ptr<f16>>, tensor<64xi32>
  %n = arith.constant 1 : i32
  %by = tt.splat %n : i32 -> tensor<64xi32>
  %y = tt.addptr %x, %by : tensor<64x!tt.ptr<f16>>, tensor<64xi32>
  %a = tt.load %x : tensor<64x!tt.ptr<f16>>
  %b = tt.load %y : tensor<64x!tt.ptr<f16>>
  tt.return %a, %b : tensor<64xf16>, tensor<64xf16>
}
