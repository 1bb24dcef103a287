// RUN: mltriton opt %s -p "scale-powers" | filecheck %s
// Powers of e that are only added up become powers of two; what is stored, too, keeps its last bits.
module {
// CHECK-LABEL: @added_up
// CHECK: [[SCALE:%.*]] = arith.constant dense<1.442695
// CHECK: [[SCALED:%.*]] = arith.mulf %x, [[SCALE]] : tensor<32xf32>
// CHECK: [[POWER:%.*]] = math.exp2 [[SCALED]] {flushes = true} : tensor<32xf32>
// CHECK: "tt.reduce"([[POWER]])
// CHECK-NOT: math.exp %
tt.func public @added_up(%x: tensor<32xf32>) -> f32 {
  %p = math.exp %x {flushes = true} : tensor<32xf32>
  %sum = "tt.reduce"(%p) ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tt.reduce.return %s : f32
  }) {axis = 0 : i32} : (tensor<32xf32>) -> f32
  tt.return %sum : f32
}
// One that is returned, one that may be more than 1, and a maximum.
// CHECK-LABEL: @others
// CHECK-NOT: math.exp2
tt.func public @others(%x: tensor<32xf32>, %y: tensor<32xf32>) -> (tensor<32xf32>, f32, f32, f32) {
  %p = math.exp %x {flushes = true} : tensor<32xf32>
  %q = math.exp %y : tensor<32xf32>
  %r = math.exp %y {flushes = true} : tensor<32xf32>
  %sum = "tt.reduce"(%p) ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tt.reduce.return %s : f32
  }) {axis = 0 : i32} : (tensor<32xf32>) -> f32
  %other = "tt.reduce"(%q) ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tt.reduce.return %s : f32
  }) {axis = 0 : i32} : (tensor<32xf32>) -> f32
  %most = "tt.reduce"(%r) ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.maxnumf %a, %b : f32
    tt.reduce.return %s : f32
  }) {axis = 0 : i32} : (tensor<32xf32>) -> f32
  tt.return %p, %sum, %other, %most : tensor<32xf32>, f32, f32, f32
}
}
