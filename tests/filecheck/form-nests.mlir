// RUN: mltriton opt %s -p form-nests | filecheck %s
// Where blocks lie in memory, what can be done row by row shares loops: a nest holds it, with everything that only it
// needs, which stays in registers. The numbers say in which loop over a row each reduction and store runs.

// The sum of a row is there when the first loop is done; a second one divides by it. The sums walk over a block of one
// dimension.
// CHECK-LABEL: @rows
// CHECK: %[[SUM:.*]] = tile.nest loops(0, 1) -> (tensor<8xf32, {{.*}}>) {
// CHECK: %[[X:.*]] = tt.load
// CHECK: %[[P:.*]] = math.exp2 %[[X]]
// CHECK: %[[S:.*]] = "tt.reduce"(%[[P]])
// CHECK: %[[Q:.*]] = arith.divf %[[P]], %{{.*}}
// CHECK: tt.store %{{.*}}, %[[Q]]
// CHECK: tile.yield %[[S]]
// CHECK: tile.nest loops(0) {
// CHECK: tt.store %{{.*}}, %[[SUM]]

// A store that takes what other rows loaded begins a nest of its own; the block is stored before, because the memory that
// it came from changes.
// CHECK-LABEL: @turned
// CHECK: %[[X:.*]] = tt.load
// CHECK-NEXT: tile.nest loops(0) {
// CHECK-NEXT: tile.fill %[[X]]
// CHECK: tile.nest loops(0) {
// CHECK-NOT: tile.fill
// CHECK: tt.store

// Memory that the store goes to runs along the other dimension than what is loaded: squares are transposed in registers.
// CHECK-LABEL: @across
// CHECK: tile.nest loops(0) {
// CHECK: tt.store
// CHECK: } {along = 0 : i32, squares = 8 : i32}

// A long row takes two loops: the first keeps the powers for the second, and asks for the lines that it stores to.
// CHECK-LABEL: @long
// CHECK: tile.nest loops(0, 0, 1) {
// CHECK: %[[P:.*]] = math.exp2
// CHECK: "tt.reduce"(%[[P]])
// CHECK: tile.fill %[[P]] {row = array<i32: 0>} : tensor<1024xf32
// CHECK: tt.store
// CHECK: } {prefetched = array<i32: 2>}

// Powers that other rows need, too, are computed again.
// CHECK-LABEL: @other_rows
// CHECK: tile.nest loops(0, 1) {
// CHECK-NOT: tile.fill
// CHECK: tt.store
#d = #ttg.blocked<{sizePerWarp = [1024], warpsPerCTA = [1], order = [0]}>
#w = #ttg.blocked<{sizePerWarp = [8, 256], warpsPerCTA = [1, 1], order = [1, 0]}>
#v = #ttg.slice<{dim = 1, parent = #w}>
#h = #ttg.blocked<{sizePerWarp = [2, 4, 256], warpsPerCTA = [1, 1, 1], order = [2, 1, 0]}>
#g = #ttg.blocked<{sizePerWarp = [4, 2, 256], warpsPerCTA = [1, 1, 1], order = [2, 0, 1]}>
#b = #ttg.blocked<{sizePerWarp = [8, 8], warpsPerCTA = [1, 1], order = [1, 0]}>
#r = #ttg.slice<{dim = 1, parent = #b}>
#l = #ttg.slice<{dim = 0, parent = #b}>
module attributes {mltriton.level = "warp", "ttg.num-warps" = 1 : i32, ttg.target = "cpu:avx512"} {
tt.func public @rows(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %s: !tt.ptr<f32>) {
  %c8 = arith.constant dense<8> : tensor<8x1xi32, #b>
  %i = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32, #r>
  %j = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32, #l>
  %rows = tt.expand_dims %i {axis = 1 : i32} : tensor<8xi32, #r> -> tensor<8x1xi32, #b>
  %columns = tt.expand_dims %j {axis = 0 : i32} : tensor<8xi32, #l> -> tensor<1x8xi32, #b>
  %starts = arith.muli %rows, %c8 : tensor<8x1xi32, #b>
  %down = tt.broadcast %starts : tensor<8x1xi32, #b> -> tensor<8x8xi32, #b>
  %along = tt.broadcast %columns : tensor<1x8xi32, #b> -> tensor<8x8xi32, #b>
  %at = arith.addi %down, %along : tensor<8x8xi32, #b>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<8x8x!tt.ptr<f32>, #b>
  %x_at = tt.addptr %xs, %at : tensor<8x8x!tt.ptr<f32>, #b>, tensor<8x8xi32, #b>
  %block = tt.load %x_at : tensor<8x8x!tt.ptr<f32>, #b>
  %powers = math.exp2 %block : tensor<8x8xf32, #b>
  %sum = "tt.reduce"(%powers) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tt.reduce.return %c : f32
  }) : (tensor<8x8xf32, #b>) -> tensor<8xf32, #r>
  %wide = tt.expand_dims %sum {axis = 1 : i32} : tensor<8xf32, #r> -> tensor<8x1xf32, #b>
  %sums = tt.broadcast %wide : tensor<8x1xf32, #b> -> tensor<8x8xf32, #b>
  %shares = arith.divf %powers, %sums : tensor<8x8xf32, #b>
  %ys = tt.splat %y : !tt.ptr<f32> -> tensor<8x8x!tt.ptr<f32>, #b>
  %y_at = tt.addptr %ys, %at : tensor<8x8x!tt.ptr<f32>, #b>, tensor<8x8xi32, #b>
  tt.store %y_at, %shares : tensor<8x8x!tt.ptr<f32>, #b>
  %ss = tt.splat %s : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>, #r>
  %s_at = tt.addptr %ss, %i : tensor<8x!tt.ptr<f32>, #r>, tensor<8xi32, #r>
  tt.store %s_at, %sum : tensor<8x!tt.ptr<f32>, #r>
  tt.return
}
tt.func public @turned(%x: !tt.ptr<f32>) {
  %c8 = arith.constant dense<8> : tensor<8x1xi32, #b>
  %i = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32, #r>
  %j = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32, #l>
  %rows = tt.expand_dims %i {axis = 1 : i32} : tensor<8xi32, #r> -> tensor<8x1xi32, #b>
  %columns = tt.expand_dims %j {axis = 0 : i32} : tensor<8xi32, #l> -> tensor<1x8xi32, #b>
  %starts = arith.muli %rows, %c8 : tensor<8x1xi32, #b>
  %down = tt.broadcast %starts : tensor<8x1xi32, #b> -> tensor<8x8xi32, #b>
  %along = tt.broadcast %columns : tensor<1x8xi32, #b> -> tensor<8x8xi32, #b>
  %at = arith.addi %down, %along : tensor<8x8xi32, #b>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<8x8x!tt.ptr<f32>, #b>
  %x_at = tt.addptr %xs, %at : tensor<8x8x!tt.ptr<f32>, #b>, tensor<8x8xi32, #b>
  %block = tt.load %x_at : tensor<8x8x!tt.ptr<f32>, #b>
  %turned = tt.trans %block {order = array<i32: 1, 0>} : tensor<8x8xf32, #b> -> tensor<8x8xf32, #b>
  tt.store %x_at, %turned : tensor<8x8x!tt.ptr<f32>, #b>
  tt.return
}
tt.func public @across(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>) {
  %c8 = arith.constant dense<8> : tensor<8x1xi32, #b>
  %i = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32, #r>
  %j = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32, #l>
  %rows = tt.expand_dims %i {axis = 1 : i32} : tensor<8xi32, #r> -> tensor<8x1xi32, #b>
  %columns = tt.expand_dims %j {axis = 0 : i32} : tensor<8xi32, #l> -> tensor<1x8xi32, #b>
  %starts = arith.muli %rows, %c8 : tensor<8x1xi32, #b>
  %down = tt.broadcast %starts : tensor<8x1xi32, #b> -> tensor<8x8xi32, #b>
  %along = tt.broadcast %columns : tensor<1x8xi32, #b> -> tensor<8x8xi32, #b>
  %at = arith.addi %down, %along : tensor<8x8xi32, #b>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<8x8x!tt.ptr<f32>, #b>
  %x_at = tt.addptr %xs, %at : tensor<8x8x!tt.ptr<f32>, #b>, tensor<8x8xi32, #b>
  %block = tt.load %x_at : tensor<8x8x!tt.ptr<f32>, #b>
  %strides = tt.broadcast %columns : tensor<1x8xi32, #b> -> tensor<8x8xi32, #b>
  %c8s = arith.constant dense<8> : tensor<8x8xi32, #b>
  %far = arith.muli %strides, %c8s : tensor<8x8xi32, #b>
  %near = tt.broadcast %rows : tensor<8x1xi32, #b> -> tensor<8x8xi32, #b>
  %across = arith.addi %far, %near : tensor<8x8xi32, #b>
  %ys = tt.splat %y : !tt.ptr<f32> -> tensor<8x8x!tt.ptr<f32>, #b>
  %y_at = tt.addptr %ys, %across : tensor<8x8x!tt.ptr<f32>, #b>, tensor<8x8xi32, #b>
  tt.store %y_at, %block : tensor<8x8x!tt.ptr<f32>, #b>
  tt.return
}
tt.func public @long(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>) {
  %i = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32, #d>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #d>
  %x_at = tt.addptr %xs, %i : tensor<1024x!tt.ptr<f32>, #d>, tensor<1024xi32, #d>
  %block = tt.load %x_at : tensor<1024x!tt.ptr<f32>, #d>
  %powers = math.exp2 %block : tensor<1024xf32, #d>
  %sum = "tt.reduce"(%powers) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tt.reduce.return %c : f32
  }) : (tensor<1024xf32, #d>) -> f32
  %sums = tt.splat %sum : f32 -> tensor<1024xf32, #d>
  %shares = arith.divf %powers, %sums : tensor<1024xf32, #d>
  %ys = tt.splat %y : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #d>
  %y_at = tt.addptr %ys, %i : tensor<1024x!tt.ptr<f32>, #d>, tensor<1024xi32, #d>
  tt.store %y_at, %shares : tensor<1024x!tt.ptr<f32>, #d>
  tt.return
}
tt.func public @other_rows(%x: f32, %y: !tt.ptr<tensor<8x256xf32, #w>>) {
  %block = tt.splat %x : f32 -> tensor<8x256xf32, #w>
  %powers = math.exp2 %block : tensor<8x256xf32, #w>
  %sum = "tt.reduce"(%powers) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tt.reduce.return %c : f32
  }) : (tensor<8x256xf32, #w>) -> tensor<8xf32, #v>
  %wide = tt.expand_dims %sum {axis = 1 : i32} : tensor<8xf32, #v> -> tensor<8x1xf32, #w>
  %sums = tt.broadcast %wide : tensor<8x1xf32, #w> -> tensor<8x256xf32, #w>
  %halves = tt.reshape %powers : tensor<8x256xf32, #w> -> tensor<2x4x256xf32, #h>
  %turned = tt.trans %halves {order = array<i32: 1, 0, 2>} : tensor<2x4x256xf32, #h> -> tensor<4x2x256xf32, #g>
  %others = tt.reshape %turned : tensor<4x2x256xf32, #g> -> tensor<8x256xf32, #w>
  %shares = arith.divf %powers, %sums : tensor<8x256xf32, #w>
  %both = arith.addf %shares, %others : tensor<8x256xf32, #w>
  tt.store %y, %both : !tt.ptr<tensor<8x256xf32, #w>>
  tt.return
}
}
