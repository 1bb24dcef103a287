// RUN: mltriton opt %s -p pack-operands | filecheck %s
// How operands of dots come to memory: in their micro-kernel's type, pairs and panels, before the loops that do not change
// them, or where they lie.

// Pairs of rows, in panels as wide as the micro-kernel's registers. The transpose of a block is read along its rows. Two
// dots take the same left operand, row by row.
// CHECK-LABEL: @pairs
// CHECK: %[[B:.*]] = tile.pack %b {element = bf16, group = 2 : i32, panel = 64 : i32} : tensor<32x128xbf16
// CHECK: %[[A:.*]] = tile.pack %a {element = bf16, in_place = true} : tensor<64x32xbf16
// CHECK: tt.dot %[[A]], %[[B]]
// CHECK: %[[T:.*]] = tt.trans
// CHECK-NEXT: %[[TURNED:.*]] = tile.pack %[[T]] {along_rows = true, element = bf16, group = 2 : i32}
// CHECK-NEXT: tt.dot %[[A]], %[[TURNED]]

// What a loop does not change is packed before it, once for both dots. What is new in each iteration is packed there.
// CHECK-LABEL: @before_the_loop
// CHECK: %[[Y:.*]] = tile.pack %y {element = f32, in_place = true, near = 1024 : i32} : tensor<64x64xf32
// CHECK: %[[X:.*]] = tile.pack %x {element = f32, in_place = true} : tensor<64x64xf32
// CHECK-NOT: tile.pack
// CHECK: scf.for
// CHECK: tt.dot %[[X]], %[[Y]]
// CHECK: tt.dot %[[X]], %[[Y]]
// CHECK: %[[POWERS:.*]] = math.exp2
// CHECK: %[[RIGHT:.*]] = ttg.convert_layout %[[POWERS]]
// CHECK-NEXT: %[[NEW:.*]] = tile.pack %[[RIGHT]] {element = f32}
// CHECK-NEXT: tt.dot %[[X]], %[[NEW]]

// A left operand whose memory runs from row to row is read so by columns; pairs along its rows have to be copied. What is
// stored as the micro-kernel's elements is not packed again.
// CHECK-LABEL: @columns
// CHECK: %[[COLUMNS:.*]] = tile.pack %{{.*}} {along_rows = true, by_columns = true, element = f32, in_place = true}
// CHECK: tt.dot %[[COLUMNS]]
// CHECK: %[[PAIRS:.*]] = tile.pack %{{.*}} {along_rows = true, element = bf16} : tensor<64x64xbf16
// CHECK: tt.dot %[[PAIRS]]
// CHECK: tile.fill %[[NARROW:.*]] {element = f32}
// CHECK-NOT: tile.pack %[[NARROW]]
// CHECK: tt.dot %[[NARROW]]

// Something else than a dot needs the block in the loop: what is in memory for that is packed there. Sixteen rows are
// multiplied by rows that lie anywhere.
// CHECK-LABEL: @few_rows
// CHECK: scf.for
// CHECK: tile.pack %y {element = f32, in_place = true} : tensor<64x64xf32
// CHECK-NEXT: tt.dot

// Of four rows lines are read where they are, unless masks cut them. The dots of a batch are packed one by one.
// CHECK-LABEL: @lines
// CHECK: tile.pack %y {by_lines = true, element = f32} : tensor<64x64xf32
// CHECK: scf.for
// CHECK: tile.pack %batch {element = f32, in_place = true, near = 1024 : i32} : tensor<4x64x64xf32
// CHECK-NEXT: tile.pack %many {element = f32, in_place = true} : tensor<4x64x64xf32
// CHECK-NEXT: tt.dot

// Two dots of one batch do so each for itself.
// CHECK-LABEL: @batch_twice
// CHECK: %[[ONE:.*]] = tile.pack %batch
// CHECK: tt.dot %{{.*}}, %[[ONE]]
// CHECK-NEXT: %[[TWO:.*]] = tile.pack %batch
// CHECK-NEXT: %[[LEFT:.*]] = tile.pack %many
// CHECK-NEXT: tt.dot %[[LEFT]], %[[TWO]]

// Scales of groups lie next to each other in memory for groups, not for columns: they are stored before the block is packed.
// CHECK-LABEL: @scales
// CHECK: %[[SCALE:.*]] = tt.load
// CHECK: tile.nest loops(0) {
// CHECK-NEXT: tile.fill %[[SCALE]] : tensor<4x1x64xf32
// CHECK-NEXT: }
// CHECK-NEXT: tile.pack %{{.*}} {element = f32} : tensor<4x64x64xf32
#c = #ttg.blocked<{sizePerWarp = [128, 128], warpsPerCTA = [1, 1], order = [1, 0]}>
#d = #ttg.blocked<{sizePerWarp = [4, 64, 64], warpsPerCTA = [1, 1, 1], order = [2, 1, 0]}>
#ca = #ttg.dot_op<{opIdx = 0, parent = #c}>
#cb = #ttg.dot_op<{opIdx = 1, parent = #c}>
#da = #ttg.dot_op<{opIdx = 0, parent = #d}>
#db = #ttg.dot_op<{opIdx = 1, parent = #d}>
module attributes {mltriton.level = "warp", "ttg.num-warps" = 1 : i32, ttg.target = "cpu:avx512-bf16"} {
tt.func public @pairs(%a: tensor<64x32xbf16, #ca>, %b: tensor<32x128xbf16, #cb>, %rows: tensor<64x32xbf16, #cb>, %w: tensor<64x128xf32, #c>, %n: tensor<64x64xf32, #c>) {
  %first = tt.dot %a, %b, %w : tensor<64x32xbf16, #ca> * tensor<32x128xbf16, #cb> -> tensor<64x128xf32, #c>
  %t = tt.trans %rows {order = array<i32: 1, 0>} : tensor<64x32xbf16, #cb> -> tensor<32x64xbf16, #cb>
  %second = tt.dot %a, %t, %n : tensor<64x32xbf16, #ca> * tensor<32x64xbf16, #cb> -> tensor<64x64xf32, #c>
  tt.return
}
tt.func public @before_the_loop(%x: tensor<64x64xf32, #ca>, %y: tensor<64x64xf32, #cb>, %sum: tensor<64x64xf32, #c>, %count: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %all = scf.for %i = %c0 to %count step %c1 iter_args(%s = %sum) -> (tensor<64x64xf32, #c>) : i32 {
    %p = tt.dot %x, %y, %s : tensor<64x64xf32, #ca> * tensor<64x64xf32, #cb> -> tensor<64x64xf32, #c>
    %q = tt.dot %x, %y, %p : tensor<64x64xf32, #ca> * tensor<64x64xf32, #cb> -> tensor<64x64xf32, #c>
    %e = math.exp2 %q : tensor<64x64xf32, #c>
    %eb = ttg.convert_layout %e : tensor<64x64xf32, #c> -> tensor<64x64xf32, #cb>
    %r = tt.dot %x, %eb, %q : tensor<64x64xf32, #ca> * tensor<64x64xf32, #cb> -> tensor<64x64xf32, #c>
    scf.yield %r : tensor<64x64xf32, #c>
  }
  tt.return
}
tt.func public @columns(%x: tensor<64x64xf32, #cb>, %y: tensor<64x64xf32, #cb>, %z: tensor<64x64xbf16, #cb>, %h: tensor<64x64xf16, #cb>, %sum: tensor<64x64xf32, #c>) {
  %xt = tt.trans %x {order = array<i32: 1, 0>} : tensor<64x64xf32, #cb> -> tensor<64x64xf32, #ca>
  %p = tt.dot %xt, %y, %sum : tensor<64x64xf32, #ca> * tensor<64x64xf32, #cb> -> tensor<64x64xf32, #c>
  %zt = tt.trans %z {order = array<i32: 1, 0>} : tensor<64x64xbf16, #cb> -> tensor<64x64xbf16, #ca>
  %q = tt.dot %zt, %z, %p : tensor<64x64xbf16, #ca> * tensor<64x64xbf16, #cb> -> tensor<64x64xf32, #c>
  %w = ttg.convert_layout %q : tensor<64x64xf32, #c> -> tensor<64x64xf32, #ca>
  %n = arith.truncf %w : tensor<64x64xf32, #ca> to tensor<64x64xf16, #ca>
  tile.nest loops(0) {
    tile.fill %n {element = f32} : tensor<64x64xf16, #ca>
  }
  %r = tt.dot %n, %h, %sum : tensor<64x64xf16, #ca> * tensor<64x64xf16, #cb> -> tensor<64x64xf32, #c>
  tt.return
}
tt.func public @few_rows(%x: tensor<16x64xf32, #ca>, %y: tensor<64x64xf32, #cb>, %sum: tensor<16x64xf32, #c>, %at: tensor<64x64x!tt.ptr<f32>, #c>, %count: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %all = scf.for %i = %c0 to %count step %c1 iter_args(%s = %sum) -> (tensor<16x64xf32, #c>) : i32 {
    %p = tt.dot %x, %y, %s : tensor<16x64xf32, #ca> * tensor<64x64xf32, #cb> -> tensor<16x64xf32, #c>
    tile.nest loops(0) {
      %yc = ttg.convert_layout %y : tensor<64x64xf32, #cb> -> tensor<64x64xf32, #c>
      tt.store %at, %yc : tensor<64x64x!tt.ptr<f32>, #c>
    }
    scf.yield %p : tensor<16x64xf32, #c>
  }
  tt.return
}
tt.func public @lines(%x: tensor<4x64xf32, #ca>, %at: tensor<64x64x!tt.ptr<f32>, #cb>, %sum: tensor<4x64xf32, #c>, %many: tensor<4x64x64xf32, #da>, %batch: tensor<4x64x64xf32, #db>, %sums: tensor<4x64x64xf32, #d>, %count: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %y = tt.load %at : tensor<64x64x!tt.ptr<f32>, #cb>
  %few = tt.dot %x, %y, %sum : tensor<4x64xf32, #ca> * tensor<64x64xf32, #cb> -> tensor<4x64xf32, #c>
  %all = scf.for %i = %c0 to %count step %c1 iter_args(%s = %sums) -> (tensor<4x64x64xf32, #d>) : i32 {
    %p = tt.dot %many, %batch, %s : tensor<4x64x64xf32, #da> * tensor<4x64x64xf32, #db> -> tensor<4x64x64xf32, #d>
    scf.yield %p : tensor<4x64x64xf32, #d>
  }
  tt.return
}
tt.func public @batch_twice(%many: tensor<4x64x64xf32, #da>, %batch: tensor<4x64x64xf32, #db>, %sums: tensor<4x64x64xf32, #d>) {
  %p = tt.dot %many, %batch, %sums : tensor<4x64x64xf32, #da> * tensor<4x64x64xf32, #db> -> tensor<4x64x64xf32, #d>
  %q = tt.dot %many, %batch, %p : tensor<4x64x64xf32, #da> * tensor<4x64x64xf32, #db> -> tensor<4x64x64xf32, #d>
  tt.return
}
tt.func public @scales(%many: tensor<4x64x64xf32, #da>, %batch: tensor<4x64x64xf32, #db>, %sums: tensor<4x64x64xf32, #d>, %from: !tt.ptr<f32>) {
  %n = arith.constant 64 : i64
  %one = arith.constant 1 : i64
  %c0 = arith.constant 0 : i32
  %at = tt.make_tensor_ptr %from, [%n, %one, %n], [%one, %n, %n], [%c0, %c0, %c0] {order = array<i32: 0, 1, 2>} : !tt.ptr<tensor<4x1x64xf32, #db>>
  %scale = tt.load %at : !tt.ptr<tensor<4x1x64xf32, #db>>
  %scales = tt.broadcast %scale : tensor<4x1x64xf32, #db> -> tensor<4x64x64xf32, #db>
  %right = arith.mulf %batch, %scales : tensor<4x64x64xf32, #db>
  %p = tt.dot %many, %right, %sums : tensor<4x64x64xf32, #da> * tensor<4x64x64xf32, #db> -> tensor<4x64x64xf32, #d>
  tt.return
}
}
