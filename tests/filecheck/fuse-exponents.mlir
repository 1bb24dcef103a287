// RUN: mltriton opt %s -p "flush-powers,fuse-exponents,dce" | filecheck %s
// Scores are scaled and their largest subtracted by one operation, where a product gives them, or a mask makes them
// infinite; not where a mask gives another number.
module {
// CHECK-LABEL: @softmax
// CHECK: %[[S:.*]] = tt.dot
// CHECK-NOT: arith.subf
// CHECK: %[[N:.*]] = arith.negf
// CHECK: %[[E:.*]] = math.fma %[[S]], %{{.*}}, %[[N]]
// CHECK: math.exp2 %[[E]] {flushes = true}
// CHECK: %[[M:.*]] = arith.select %mask, %[[S]], %{{.*}}
// CHECK-NOT: arith.subf
// CHECK: math.fma %[[M]],
// CHECK: math.exp2 %{{.*}} {flushes = true}
// CHECK: arith.select
// CHECK-NOT: math.fma
// CHECK: arith.subf
// CHECK: math.exp2 %{{.*}} {flushes = true}
tt.func public @softmax(%q: tensor<16x16xf16>, %k: tensor<16x32xf16>, %mask: tensor<16x32xi1>, %before: tensor<16xf32>, %scale: f32) -> tensor<16x32xf32> {
  %zero = arith.constant dense<0.0> : tensor<16x32xf32>
  %low = arith.constant dense<-1.0e30> : tensor<16x32xf32>
  %by = tt.splat %scale : f32 -> tensor<16x32xf32>
  %by1 = tt.splat %scale : f32 -> tensor<16xf32>
  %s = tt.dot %q, %k, %zero : tensor<16x16xf16> * tensor<16x32xf16> -> tensor<16x32xf32>
  %rows = "tt.reduce"(%s) ({
  ^bb0(%a: f32, %b: f32):
    %m = arith.maxnumf %a, %b : f32
    tt.reduce.return %m : f32
  }) {axis = 1 : i32} : (tensor<16x32xf32>) -> tensor<16xf32>
  %largest = arith.mulf %rows, %by1 : tensor<16xf32>
  %new = arith.maxnumf %before, %largest : tensor<16xf32>
  %new1 = tt.expand_dims %new {axis = 1 : i32} : tensor<16xf32> -> tensor<16x1xf32>
  %new2 = tt.broadcast %new1 : tensor<16x1xf32> -> tensor<16x32xf32>
  %scaled = arith.mulf %s, %by : tensor<16x32xf32>
  %d = arith.subf %scaled, %new2 : tensor<16x32xf32>
  %p = math.exp2 %d : tensor<16x32xf32>
  %nothing = arith.constant dense<0xFF800000> : tensor<16x32xf32>
  %masked = arith.select %mask, %s, %nothing : tensor<16x32xi1>, tensor<16x32xf32>
  %maskedscaled = arith.mulf %masked, %by : tensor<16x32xf32>
  %maskedrows = "tt.reduce"(%masked) ({
  ^bb0(%a: f32, %b: f32):
    %m = arith.maxnumf %a, %b : f32
    tt.reduce.return %m : f32
  }) {axis = 1 : i32} : (tensor<16x32xf32>) -> tensor<16xf32>
  %largest3 = arith.mulf %maskedrows, %by1 : tensor<16xf32>
  %third1 = tt.expand_dims %largest3 {axis = 1 : i32} : tensor<16xf32> -> tensor<16x1xf32>
  %third2 = tt.broadcast %third1 : tensor<16x1xf32> -> tensor<16x32xf32>
  %f = arith.subf %maskedscaled, %third2 : tensor<16x32xf32>
  %t = math.exp2 %f : tensor<16x32xf32>
  %hidden = arith.select %mask, %s, %low : tensor<16x32xi1>, tensor<16x32xf32>
  %rows2 = "tt.reduce"(%hidden) ({
  ^bb0(%a: f32, %b: f32):
    %m = arith.maxnumf %a, %b : f32
    tt.reduce.return %m : f32
  }) {axis = 1 : i32} : (tensor<16x32xf32>) -> tensor<16xf32>
  %largest2 = arith.mulf %rows2, %by1 : tensor<16xf32>
  %other1 = tt.expand_dims %largest2 {axis = 1 : i32} : tensor<16xf32> -> tensor<16x1xf32>
  %other2 = tt.broadcast %other1 : tensor<16x1xf32> -> tensor<16x32xf32>
  %hiddenscaled = arith.mulf %hidden, %by : tensor<16x32xf32>
  %e = arith.subf %hiddenscaled, %other2 : tensor<16x32xf32>
  %r = math.exp2 %e : tensor<16x32xf32>
  %both = arith.addf %p, %t : tensor<16x32xf32>
  %sum = arith.addf %both, %r : tensor<16x32xf32>
  tt.return %sum : tensor<16x32xf32>
}
}
