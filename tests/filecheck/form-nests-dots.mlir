// RUN: mltriton opt %s -p form-nests | filecheck %s
// What a dot takes computed is stored by the nest before it.

// Sums of rows, the scaled sum of the products so far and the left operand, as the micro-kernel takes it: one nest. The
// transpose of what is multiplied on the right is of no use there.
// CHECK-LABEL: @step
// CHECK: %[[S:.*]] = tt.dot
// CHECK-NEXT: %[[P:.*]], %[[ACC:.*]] = tile.nest loops(0, 1, 1)
// CHECK: "tt.reduce"(%[[S]])
// CHECK-NOT: tt.trans
// CHECK: tile.fill %[[SCALED:.*]] {start = true}
// CHECK-NEXT: tile.fill %[[NARROW:.*]] {element = f32} : tensor<16x16xf16
// CHECK-NEXT: tile.yield %[[NARROW]], %[[SCALED]]
// CHECK: %[[V:.*]] = tt.trans
// CHECK: %[[LEFT:.*]] = ttg.convert_layout %[[P]]
// CHECK: tt.dot %[[LEFT]], %[[V]], %[[ACC]]

// Two products of what is made of the same powers: both are stored when the first one needs its operand, the transpose as
// what it is the transpose of. Blocks of the type that is multiplied have no other form.
// CHECK-LABEL: @together
// CHECK: %[[POWERS:.*]] = math.exp2
// CHECK: tile.nest loops(0, 0) {
// CHECK-NEXT: tile.fill %[[POWERS]] : tensor<16x16xf32
// CHECK-NEXT: tile.fill %[[TWICE:.*]] : tensor<16x16xf32
// CHECK-NEXT: }
// CHECK: tt.dot
// CHECK-NOT: tile.fill
// CHECK: tt.dot

// What the second one takes is made behind the first product: it is moved in front of the nest that stores it.
// CHECK-LABEL: @made_later
// CHECK: tile.nest loops(0, 0)
// CHECK: tile.fill %[[POWERS:.*]] : tensor<16x16xf32
// CHECK-NEXT: %[[LATER:.*]] = arith.addf
// CHECK-NEXT: tile.fill %[[LATER]] : tensor<16x16xf32
// CHECK: tt.dot
// CHECK: tt.dot
// What is stored for the product is computed in the second loop of a row, from powers that the first one keeps.
// CHECK-LABEL: @kept
// CHECK: tile.nest loops(0, 1, 0, 1)
// CHECK: %[[FIRST:.*]] = math.exp2 %s
// CHECK: tile.fill %[[FIRST]] {row = array<i32: 0, 1>}
// CHECK: tile.fill %{{.*}} : tensor<16x256xf32
// CHECK: tt.dot
#c = #ttg.blocked<{sizePerWarp = [16, 16], warpsPerCTA = [1, 1], order = [1, 0]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #c}>
#b = #ttg.dot_op<{opIdx = 1, parent = #c}>
#rows = #ttg.slice<{dim = 1, parent = #c}>
#w = #ttg.blocked<{sizePerWarp = [16, 256], warpsPerCTA = [1, 1], order = [1, 0]}>
#tops = #ttg.slice<{dim = 1, parent = #w}>
module attributes {mltriton.level = "warp", "ttg.num-warps" = 1 : i32, ttg.target = "cpu:avx512"} {
tt.func public @step(%q: tensor<16x16xf16, #a>, %k: tensor<16x16xf16, #b>, %acc: tensor<16x16xf32, #c>, %o: !tt.ptr<f32>) {
  %n = arith.constant 16 : i64
  %c0 = arith.constant 0 : i32
  %one = arith.constant 1 : i64
  %zero = arith.constant dense<0.0> : tensor<16x16xf32, #c>
  %into = tt.make_tensor_ptr %o, [%n, %n], [%n, %one], [%c0, %c0] {order = array<i32: 1, 0>} : !tt.ptr<tensor<16x16xf32, #c>>
  %s = tt.dot %q, %k, %zero : tensor<16x16xf16, #a> * tensor<16x16xf16, #b> -> tensor<16x16xf32, #c>
  %max = "tt.reduce"(%s) <{axis = 1 : i32}> ({
  ^bb0(%u: f32, %v: f32):
    %w = arith.maxnumf %u, %v : f32
    tt.reduce.return %w : f32
  }) : (tensor<16x16xf32, #c>) -> tensor<16xf32, #rows>
  %wide = tt.expand_dims %max {axis = 1 : i32} : tensor<16xf32, #rows> -> tensor<16x1xf32, #c>
  %maxima = tt.broadcast %wide : tensor<16x1xf32, #c> -> tensor<16x16xf32, #c>
  %d = arith.subf %s, %maxima : tensor<16x16xf32, #c>
  %p = arith.truncf %d : tensor<16x16xf32, #c> to tensor<16x16xf16, #c>
  %t = tt.trans %k {order = array<i32: 1, 0>} : tensor<16x16xf16, #b> -> tensor<16x16xf16, #b>
  %scaled = arith.mulf %acc, %maxima : tensor<16x16xf32, #c>
  %pa = ttg.convert_layout %p : tensor<16x16xf16, #c> -> tensor<16x16xf16, #a>
  %r = tt.dot %pa, %t, %scaled : tensor<16x16xf16, #a> * tensor<16x16xf16, #b> -> tensor<16x16xf32, #c>
  tt.store %into, %r : !tt.ptr<tensor<16x16xf32, #c>>
  tt.return
}
tt.func public @together(%s: tensor<16x16xf32, #c>, %k: tensor<16x16xf32, #b>, %o: !tt.ptr<f32>) {
  %n = arith.constant 16 : i64
  %c0 = arith.constant 0 : i32
  %one = arith.constant 1 : i64
  %zero = arith.constant dense<0.0> : tensor<16x16xf32, #c>
  %into = tt.make_tensor_ptr %o, [%n, %n], [%n, %one], [%c0, %c0] {order = array<i32: 1, 0>} : !tt.ptr<tensor<16x16xf32, #c>>
  %p = math.exp2 %s : tensor<16x16xf32, #c>
  %twice = arith.addf %p, %s : tensor<16x16xf32, #c>
  %pt = tt.trans %p {order = array<i32: 1, 0>} : tensor<16x16xf32, #c> -> tensor<16x16xf32, #c>
  %pa = ttg.convert_layout %pt : tensor<16x16xf32, #c> -> tensor<16x16xf32, #a>
  %first = tt.dot %pa, %k, %zero : tensor<16x16xf32, #a> * tensor<16x16xf32, #b> -> tensor<16x16xf32, #c>
  %ta = ttg.convert_layout %twice : tensor<16x16xf32, #c> -> tensor<16x16xf32, #a>
  %second = tt.dot %ta, %k, %first : tensor<16x16xf32, #a> * tensor<16x16xf32, #b> -> tensor<16x16xf32, #c>
  tt.store %into, %second : !tt.ptr<tensor<16x16xf32, #c>>
  tt.return
}
tt.func public @made_later(%s: tensor<16x16xf32, #c>, %k: tensor<16x16xf32, #b>, %o: !tt.ptr<f32>) {
  %n = arith.constant 16 : i64
  %c0 = arith.constant 0 : i32
  %one = arith.constant 1 : i64
  %zero = arith.constant dense<0.0> : tensor<16x16xf32, #c>
  %into = tt.make_tensor_ptr %o, [%n, %n], [%n, %one], [%c0, %c0] {order = array<i32: 1, 0>} : !tt.ptr<tensor<16x16xf32, #c>>
  %p = math.exp2 %s : tensor<16x16xf32, #c>
  %pt = tt.trans %p {order = array<i32: 1, 0>} : tensor<16x16xf32, #c> -> tensor<16x16xf32, #c>
  %pa = ttg.convert_layout %pt : tensor<16x16xf32, #c> -> tensor<16x16xf32, #a>
  %first = tt.dot %pa, %k, %zero : tensor<16x16xf32, #a> * tensor<16x16xf32, #b> -> tensor<16x16xf32, #c>
  %twice = arith.addf %p, %s : tensor<16x16xf32, #c>
  %ta = ttg.convert_layout %twice : tensor<16x16xf32, #c> -> tensor<16x16xf32, #a>
  %second = tt.dot %ta, %k, %first : tensor<16x16xf32, #a> * tensor<16x16xf32, #b> -> tensor<16x16xf32, #c>
  tt.store %into, %second : !tt.ptr<tensor<16x16xf32, #c>>
  tt.return
}
tt.func public @kept(%s: tensor<16x256xf32, #w>, %k: tensor<256x16xf32, #b>, %o: tensor<16x!tt.ptr<f32>, #tops>, %acc: tensor<16x16xf32, #c>) {
  %power = math.exp2 %s : tensor<16x256xf32, #w>
  %max = "tt.reduce"(%power) <{axis = 1 : i32}> ({
  ^bb0(%u: f32, %v: f32):
    %w = arith.maxnumf %u, %v : f32
    tt.reduce.return %w : f32
  }) : (tensor<16x256xf32, #w>) -> tensor<16xf32, #tops>
  %wide = tt.expand_dims %max {axis = 1 : i32} : tensor<16xf32, #tops> -> tensor<16x1xf32, #w>
  %maxima = tt.broadcast %wide : tensor<16x1xf32, #w> -> tensor<16x256xf32, #w>
  %d = arith.subf %power, %maxima : tensor<16x256xf32, #w>
  %p = math.exp2 %d : tensor<16x256xf32, #w>
  %sum = "tt.reduce"(%p) <{axis = 1 : i32}> ({
  ^bb0(%u: f32, %v: f32):
    %w = arith.addf %u, %v : f32
    tt.reduce.return %w : f32
  }) : (tensor<16x256xf32, #w>) -> tensor<16xf32, #tops>
  %pa = ttg.convert_layout %p : tensor<16x256xf32, #w> -> tensor<16x256xf32, #a>
  %r = tt.dot %pa, %k, %acc : tensor<16x256xf32, #a> * tensor<256x16xf32, #b> -> tensor<16x16xf32, #c>
  tt.store %o, %sum : tensor<16x!tt.ptr<f32>, #tops>
  tt.return
}
}
