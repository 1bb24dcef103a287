// RUN: mltriton opt %s -p split-uniform-increments,canonicalize | filecheck %s
// The loop carries an i64 offset instead of a tensor of pointers.

// CHECK-LABEL: @sum
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[D:.*]] = %c0_i64) -> (tensor<8xf32>, i64)
// CHECK: %[[P:.*]] = tt.addptr %p, %[[D]] : !tt.ptr<f32>, i64
// CHECK: %[[S:.*]] = tt.splat %[[P]]
// CHECK: %[[X:.*]] = tt.addptr %[[S]]
// CHECK: tt.load %[[X]]
// CHECK: arith.addi %[[D]], %{{.*}} : i64
tt.func @sum(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %n: i32, %stride: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.000000e+00> : tensor<8xf32>
  %i = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>
  %s = tt.splat %p : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %start = tt.addptr %s, %i : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  %step = tt.splat %stride : i32 -> tensor<8xi32>
  %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%a = %zero, %x = %start) -> (tensor<8xf32>, tensor<8x!tt.ptr<f32>>) : i32 {
    %v = tt.load %x : tensor<8x!tt.ptr<f32>>
    %b = arith.addf %a, %v : tensor<8xf32>
    %y = tt.addptr %x, %step : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
    scf.yield %b, %y : tensor<8xf32>, tensor<8x!tt.ptr<f32>>
  }
  %t = tt.splat %q : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %out = tt.addptr %t, %i : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  tt.store %out, %r#0 : tensor<8x!tt.ptr<f32>>
  tt.return
}

// What is promised of the carried block is promised of what stands for it.

// CHECK-LABEL: @promised
// CHECK: scf.for
// CHECK: %[[S:.*]] = tt.splat
// CHECK: %[[X:.*]] = tt.addptr %[[S]], %{{.*}} {tt.divisibility = dense<16> : tensor<1xi32>}
// CHECK: tt.load %[[X]]
tt.func @promised(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %n: i32, %stride: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.000000e+00> : tensor<8xf32>
  %none = arith.constant dense<0> : tensor<8xi32>
  %i = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>
  %s = tt.splat %p : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %start = tt.addptr %s, %i : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  %step = tt.splat %stride : i32 -> tensor<8xi32>
  %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%a = %zero, %x = %start) -> (tensor<8xf32>, tensor<8x!tt.ptr<f32>>) : i32 {
    %here = tt.addptr %x, %none {tt.divisibility = dense<16> : tensor<1xi32>} : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
    %v = tt.load %here : tensor<8x!tt.ptr<f32>>
    %b = arith.addf %a, %v : tensor<8xf32>
    %y = tt.addptr %here, %step : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
    scf.yield %b, %y : tensor<8xf32>, tensor<8x!tt.ptr<f32>>
  }
  %t = tt.splat %q : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %out = tt.addptr %t, %i : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  tt.store %out, %r#0 : tensor<8x!tt.ptr<f32>>
  tt.return
}
