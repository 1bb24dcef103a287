// RUN: mltriton opt %s -p form-nests,pack-operands,match-target-size,dce | filecheck %s
// Left operands of dots are stored with the elements that micro-kernels take. What such a block is computed from stays
// where it is as long as others than dots need it.

// The second loop over a column computes the probabilities again: the maxima of rows are in memory behind their nest.
// CHECK-LABEL: @again
// CHECK: tile.indirect_dot {{.*}} {ahead
// CHECK: %[[MAXIMA:.*]] = tile.scratch {bytes = 64 : i32} : !tt.ptr<f32, 5>
// CHECK: %[[MAX:.*]] = "tt.reduce"
// CHECK: %[[AT:.*]] = tt.addptr %[[MAXIMA]]
// CHECK: tt.store %[[AT]], %[[MAX]]
// CHECK: tile.indirect_dot {{.*}} {ahead
// CHECK: tt.load %[[MAXIMA]]
// CHECK: arith.subf
// CHECK: arith.truncf
// CHECK: arith.extf
// CHECK: arith.maxnumf

// The first product reads its right operand line by line and takes f32 on the left, which does not overwrite the scores:
// the second one takes bf16.
// CHECK-LABEL: @mixed
// CHECK: %[[SCORES:.*]] = tile.scratch {bytes = 2560 : i32} : !tt.ptr<f32, 5>
// CHECK: tile.dot {{.*}}, %[[SCORES]], {{.*}} {group = 2
// CHECK: %[[LEFT:.*]] = tile.scratch {bytes = 2560 : i32} : !tt.ptr<f32, 5>
// CHECK: %[[SUM:.*]] = tile.scratch {bytes = 2560 : i32} : !tt.ptr<f32, 5>
// CHECK: tt.addptr %[[SCORES]]
// CHECK: arith.truncf
// CHECK: arith.extf
// CHECK: tt.addptr %[[LEFT]]
// CHECK: tile.indirect_dot %[[LEFT]], {{.*}}, %[[SUM]], {{.*}} {ahead
// CHECK: %[[PAIRS:.*]] = tile.scratch {bytes = 1024 : i32} : !tt.ptr<bf16, 5>
// CHECK: tt.addptr %[[SCORES]]
// CHECK: arith.truncf
// CHECK: tile.dot %[[PAIRS]], {{.*}} {group = 2
#c = #ttg.blocked<{sizePerWarp = [8, 64], warpsPerCTA = [1, 1], order = [1, 0]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #c}>
#b = #ttg.dot_op<{opIdx = 1, parent = #c}>
#rows = #ttg.slice<{dim = 1, parent = #c}>
#columns = #ttg.slice<{dim = 0, parent = #c}>
module attributes {mltriton.level = "warp", "ttg.num-warps" = 1 : i32, ttg.target = "cpu:amx"} {
tt.func public @again(%q: !tt.ptr<f16>, %k: !tt.ptr<f16>, %o: !tt.ptr<f32>, %h: !tt.ptr<f32>) {
  %n = arith.constant 64 : i64
  %c0 = arith.constant 0 : i32
  %one = arith.constant 1 : i64
  %zero = arith.constant dense<0.0> : tensor<8x64xf32, #c>
  %left = tt.make_tensor_ptr %q, [%n, %n], [%n, %one], [%c0, %c0] {order = array<i32: 1, 0>} : !tt.ptr<tensor<8x64xf16, #a>>
  %right = tt.make_tensor_ptr %k, [%n, %n], [%n, %one], [%c0, %c0] {order = array<i32: 1, 0>} : !tt.ptr<tensor<64x64xf16, #b>>
  %into = tt.make_tensor_ptr %o, [%n, %n], [%n, %one], [%c0, %c0] {order = array<i32: 1, 0>} : !tt.ptr<tensor<8x64xf32, #c>>
  %x = tt.load %left : !tt.ptr<tensor<8x64xf16, #a>>
  %y = tt.load %right : !tt.ptr<tensor<64x64xf16, #b>>
  %s = tt.dot %x, %y, %zero : tensor<8x64xf16, #a> * tensor<64x64xf16, #b> -> tensor<8x64xf32, #c>
  %max = "tt.reduce"(%s) <{axis = 1 : i32}> ({
  ^bb0(%u: f32, %v: f32):
    %w = arith.maxnumf %u, %v : f32
    tt.reduce.return %w : f32
  }) : (tensor<8x64xf32, #c>) -> tensor<8xf32, #rows>
  %wide = tt.expand_dims %max {axis = 1 : i32} : tensor<8xf32, #rows> -> tensor<8x1xf32, #c>
  %maxima = tt.broadcast %wide : tensor<8x1xf32, #c> -> tensor<8x64xf32, #c>
  %d = arith.subf %s, %maxima : tensor<8x64xf32, #c>
  %p = arith.truncf %d : tensor<8x64xf32, #c> to tensor<8x64xf16, #c>
  %pa = ttg.convert_layout %p : tensor<8x64xf16, #c> -> tensor<8x64xf16, #a>
  %r = tt.dot %pa, %y, %zero : tensor<8x64xf16, #a> * tensor<64x64xf16, #b> -> tensor<8x64xf32, #c>
  tt.store %into, %r : !tt.ptr<tensor<8x64xf32, #c>>
  %f = arith.extf %p : tensor<8x64xf16, #c> to tensor<8x64xf32, #c>
  %tops = "tt.reduce"(%f) <{axis = 0 : i32}> ({
  ^bb0(%u: f32, %v: f32):
    %w = arith.maxnumf %u, %v : f32
    tt.reduce.return %w : f32
  }) : (tensor<8x64xf32, #c>) -> tensor<64xf32, #columns>
  %i = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #columns>
  %hs = tt.splat %h : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #columns>
  %at = tt.addptr %hs, %i : tensor<64x!tt.ptr<f32>, #columns>, tensor<64xi32, #columns>
  tt.store %at, %tops : tensor<64x!tt.ptr<f32>, #columns>
  tt.return
}
tt.func public @mixed(%q: !tt.ptr<bf16>, %k: !tt.ptr<bf16>, %o: !tt.ptr<f32>) {
  %n = arith.constant 64 : i64
  %c0 = arith.constant 0 : i32
  %c8 = arith.constant 8 : i32
  %one = arith.constant 1 : i64
  %zero = arith.constant dense<0.0> : tensor<8x64xf32, #c>
  %left = tt.make_tensor_ptr %q, [%n, %n], [%n, %one], [%c0, %c0] {order = array<i32: 1, 0>} : !tt.ptr<tensor<8x64xbf16, #a>>
  %right = tt.make_tensor_ptr %k, [%n, %n], [%n, %one], [%c0, %c0] {order = array<i32: 1, 0>} : !tt.ptr<tensor<64x64xbf16, #b>>
  %into = tt.make_tensor_ptr %o, [%n, %n], [%n, %one], [%c0, %c0] {order = array<i32: 1, 0>} : !tt.ptr<tensor<8x64xf32, #c>>
  %then = tt.make_tensor_ptr %o, [%n, %n], [%n, %one], [%c8, %c0] {order = array<i32: 1, 0>} : !tt.ptr<tensor<8x64xf32, #c>>
  %x = tt.load %left : !tt.ptr<tensor<8x64xbf16, #a>>
  %y = tt.load %right : !tt.ptr<tensor<64x64xbf16, #b>>
  %two = arith.addf %y, %y : tensor<64x64xbf16, #b>
  %s = tt.dot %x, %two, %zero : tensor<8x64xbf16, #a> * tensor<64x64xbf16, #b> -> tensor<8x64xf32, #c>
  %p = arith.truncf %s : tensor<8x64xf32, #c> to tensor<8x64xbf16, #c>
  %pa = ttg.convert_layout %p : tensor<8x64xbf16, #c> -> tensor<8x64xbf16, #a>
  %first = tt.dot %pa, %y, %zero : tensor<8x64xbf16, #a> * tensor<64x64xbf16, #b> -> tensor<8x64xf32, #c>
  tt.store %into, %first : !tt.ptr<tensor<8x64xf32, #c>>
  %second = tt.dot %pa, %two, %zero : tensor<8x64xbf16, #a> * tensor<64x64xbf16, #b> -> tensor<8x64xf32, #c>
  tt.store %then, %second : !tt.ptr<tensor<8x64xf32, #c>>
  tt.return
}
}
