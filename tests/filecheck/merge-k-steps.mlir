// RUN: mltriton opt %s -p "merge-k-steps{k=64},canonicalize" | filecheck %s
// Four steps of 16 become one of 64; the old loop does what is left.

// CHECK-LABEL: @product
// CHECK: %[[M:.*]] = arith.muli %{{.*}}, %c64
// CHECK: %[[L:.*]] = scf.for %[[K:.*]] = %c0 to %[[M]] step %c64
// CHECK: tt.make_tensor_ptr %a, {{.*}}, [%c0, %[[K]]] {{.*}} : <tensor<8x64xf32>>
// CHECK: tt.make_tensor_ptr %b, {{.*}}, [%[[K]], %c0] {{.*}} : <tensor<64x16xf32>>
// CHECK: tt.dot {{.*}} : tensor<8x64xf32> * tensor<64x16xf32> -> tensor<8x16xf32>
// CHECK: scf.for {{.*}} = %[[M]] to %n step %c16 iter_args(%{{.*}} = %[[L]])
// CHECK: tt.dot {{.*}} : tensor<8x16xf32> * tensor<16x16xf32> -> tensor<8x16xf32>
tt.func @product(%a: !tt.ptr<f32>, %b: !tt.ptr<f32>, %n: i32) -> tensor<8x16xf32> {
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %one = arith.constant 1 : i64
  %size = arith.extsi %n : i32 to i64
  %zero = arith.constant dense<0.000000e+00> : tensor<8x16xf32>
  %r = scf.for %k = %c0 to %n step %c16 iter_args(%acc = %zero) -> (tensor<8x16xf32>) : i32 {
    %ap = tt.make_tensor_ptr %a, [%size, %size], [%size, %one], [%c0, %k] {order = array<i32: 1, 0>} : <tensor<8x16xf32>>
    %bp = tt.make_tensor_ptr %b, [%size, %size], [%size, %one], [%k, %c0] {order = array<i32: 1, 0>} : <tensor<16x16xf32>>
    %x = tt.load %ap {boundaryCheck = array<i32: 0, 1>} : !tt.ptr<tensor<8x16xf32>>
    %y = tt.load %bp {boundaryCheck = array<i32: 0, 1>} : !tt.ptr<tensor<16x16xf32>>
    %d = tt.dot %x, %y, %acc : tensor<8x16xf32> * tensor<16x16xf32> -> tensor<8x16xf32>
    scf.yield %d : tensor<8x16xf32>
  }
  tt.return %r : tensor<8x16xf32>
}
