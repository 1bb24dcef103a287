// RUN: mltriton opt %s -p "flush-powers" | filecheck %s
// Powers in a softmax may lose denormals: of scores less their rows' maximum, or less more than that, scaled alike; so may
// what a sum so far is multiplied by when the maximum grows, but for a maximum of other numbers.
module {
// CHECK-LABEL: @softmax
// CHECK: math.exp2 %{{.*}} {flushes = true}
// CHECK: math.exp2 %{{.*}} {flushes = true}
// CHECK: math.exp2 %{{.*}} :
// CHECK: math.exp2 %{{.*}} :
// CHECK: math.exp2 %{{.*}} {flushes = true}
// CHECK: math.exp2 %{{.*}} :
tt.func public @softmax(%x: tensor<16x32xf32>, %y: tensor<16x32xf32>, %before: tensor<16xf32>, %scale: f32) {
  %rows = "tt.reduce"(%x) ({
  ^bb0(%a: f32, %b: f32):
    %m = arith.maxnumf %a, %b : f32
    tt.reduce.return %m : f32
  }) {axis = 1 : i32} : (tensor<16x32xf32>) -> tensor<16xf32>
  %new = arith.maxnumf %before, %rows : tensor<16xf32>
  %new1 = tt.expand_dims %new {axis = 1 : i32} : tensor<16xf32> -> tensor<16x1xf32>
  %new2 = tt.broadcast %new1 : tensor<16x1xf32> -> tensor<16x32xf32>
  %d = arith.subf %x, %new2 : tensor<16x32xf32>
  %p = math.exp2 %d : tensor<16x32xf32>
  %s1 = tt.splat %scale : f32 -> tensor<16xf32>
  %s2 = tt.splat %scale : f32 -> tensor<16x32xf32>
  %scaled = arith.mulf %rows, %s1 : tensor<16xf32>
  %new3 = arith.maxnumf %before, %scaled : tensor<16xf32>
  %new4 = tt.expand_dims %new3 {axis = 1 : i32} : tensor<16xf32> -> tensor<16x1xf32>
  %new5 = tt.broadcast %new4 : tensor<16x1xf32> -> tensor<16x32xf32>
  %z = arith.mulf %x, %s2 : tensor<16x32xf32>
  %e = arith.subf %z, %new5 : tensor<16x32xf32>
  %q = math.exp2 %e : tensor<16x32xf32>
  %f = arith.subf %x, %new5 : tensor<16x32xf32>
  %r = math.exp2 %f : tensor<16x32xf32>
  %g = arith.subf %y, %new2 : tensor<16x32xf32>
  %s = math.exp2 %g : tensor<16x32xf32>
  %grown = arith.subf %before, %new3 : tensor<16xf32>
  %t = math.exp2 %grown : tensor<16xf32>
  %larger = arith.maxnumf %before, %s1 : tensor<16xf32>
  %other = arith.subf %before, %larger : tensor<16xf32>
  %u = math.exp2 %other : tensor<16xf32>
  tt.return
}
// What only goes into dots rounded to 16 bits, multiplied, chosen or transposed on the way; not what is used otherwise.
// CHECK-LABEL: @narrowed
// CHECK: math.exp2 %{{.*}} {flushes = true}
// CHECK: math.exp2 %{{.*}} :
// CHECK: math.exp2 %{{.*}} :
tt.func public @narrowed(%x: tensor<32x32xf32>, %y: tensor<32x32xf32>, %mask: tensor<32x32xi1>) -> (tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x32xbf16>) {
  %zero = arith.constant dense<0.0> : tensor<32x32xf32>
  %p = math.exp2 %x : tensor<32x32xf32>
  %chosen = arith.select %mask, %p, %zero : tensor<32x32xi1>, tensor<32x32xf32>
  %product = arith.mulf %chosen, %y : tensor<32x32xf32>
  %a = arith.truncf %product : tensor<32x32xf32> to tensor<32x32xbf16>
  %t = tt.trans %a {order = array<i32: 1, 0>} : tensor<32x32xbf16> -> tensor<32x32xbf16>
  %dot = tt.dot %a, %t, %zero : tensor<32x32xbf16> * tensor<32x32xbf16> -> tensor<32x32xf32>
  %q = math.exp2 %y : tensor<32x32xf32>
  %b = arith.truncf %q : tensor<32x32xf32> to tensor<32x32xbf16>
  %sum = arith.addf %q, %x : tensor<32x32xf32>
  %d = tt.dot %b, %b, %sum : tensor<32x32xbf16> * tensor<32x32xbf16> -> tensor<32x32xf32>
  %r = math.exp2 %sum : tensor<32x32xf32>
  %stored = arith.truncf %r : tensor<32x32xf32> to tensor<32x32xbf16>
  tt.return %dot, %d, %stored : tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x32xbf16>
}
// Powers of e are marked only where they are no more than 1; rows may be a program's whole block.
// CHECK-LABEL: @of_e
// CHECK: math.exp %{{.*}} {flushes = true}
// CHECK: math.exp %x :
tt.func public @of_e(%x: tensor<32xf32>, %before: f32) -> (tensor<32xf32>, tensor<32xf32>) {
  %row = "tt.reduce"(%x) ({
  ^bb0(%a: f32, %b: f32):
    %m = arith.maxnumf %a, %b : f32
    tt.reduce.return %m : f32
  }) {axis = 0 : i32} : (tensor<32xf32>) -> f32
  %new = arith.maxnumf %before, %row : f32
  %all = tt.splat %new : f32 -> tensor<32xf32>
  %d = arith.subf %x, %all : tensor<32xf32>
  %p = math.exp %d : tensor<32xf32>
  %q = math.exp %x : tensor<32xf32>
  tt.return %p, %q : tensor<32xf32>, tensor<32xf32>
}
// Of columns the largest elements, subtracted from rows, say nothing.
// CHECK-LABEL: @other_axis
// CHECK: math.exp %{{.*}} :
tt.func public @other_axis(%x: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %columns = "tt.reduce"(%x) ({
  ^bb0(%a: f32, %b: f32):
    %m = arith.maxnumf %a, %b : f32
    tt.reduce.return %m : f32
  }) {axis = 0 : i32} : (tensor<32x32xf32>) -> tensor<32xf32>
  %new = tt.expand_dims %columns {axis = 1 : i32} : tensor<32xf32> -> tensor<32x1xf32>
  %all = tt.broadcast %new : tensor<32x1xf32> -> tensor<32x32xf32>
  %d = arith.subf %x, %all : tensor<32x32xf32>
  %p = math.exp %d : tensor<32x32xf32>
  tt.return %p : tensor<32x32xf32>
}
}
