// RUN: mltriton opt %s -p form-nests | filecheck %s
// A store may share loops with what read the memory that it writes before it, as far as that is over when it comes.

// Every chunk is read before it is written: one loop.
// CHECK-LABEL: @same_chunk
// CHECK: tile.nest loops(0, 0) {

// The store of a row waits until all of the row is read.
// CHECK-LABEL: @same_row
// CHECK: tile.nest loops(0, 1) {

// Where other rows are still to be read, it stands in a nest of its own.
// CHECK-LABEL: @other_rows
// CHECK: tile.nest loops(0)
// CHECK: tile.nest loops(0) {

#d = #ttg.blocked<{sizePerWarp = [8, 64], warpsPerCTA = [1, 1], order = [1, 0]}>
#columns = #ttg.slice<{dim = 0, parent = #d}>
#rows = #ttg.slice<{dim = 1, parent = #d}>
module attributes {mltriton.level = "warp", "ttg.num-warps" = 1 : i32, ttg.target = "cpu:avx2"} {
  tt.func public @same_chunk(%p: !tt.ptr<f32>, %y: tensor<8x64x!tt.ptr<f64>, #d>) {
    %columns = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #columns>
    %rows = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32, #rows>
    %row = tt.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #columns> -> tensor<1x64xi32, #d>
    %column = tt.expand_dims %rows {axis = 1 : i32} : tensor<8xi32, #rows> -> tensor<8x1xi32, #d>
    %width = arith.constant dense<64> : tensor<8x1xi32, #d>
    %starts = arith.muli %column, %width : tensor<8x1xi32, #d>
    %all_rows = tt.broadcast %row : tensor<1x64xi32, #d> -> tensor<8x64xi32, #d>
    %all_starts = tt.broadcast %starts : tensor<8x1xi32, #d> -> tensor<8x64xi32, #d>
    %offsets = arith.addi %all_starts, %all_rows : tensor<8x64xi32, #d>
    %xs = tt.splat %p : !tt.ptr<f32> -> tensor<8x64x!tt.ptr<f32>, #d>
    %x = tt.addptr %xs, %offsets : tensor<8x64x!tt.ptr<f32>, #d>, tensor<8x64xi32, #d>
    %0 = tt.load %x : tensor<8x64x!tt.ptr<f32>, #d>
    %1 = arith.extf %0 : tensor<8x64xf32, #d> to tensor<8x64xf64, #d>
    tt.store %y, %1 : tensor<8x64x!tt.ptr<f64>, #d>
    %2 = arith.addf %0, %0 : tensor<8x64xf32, #d>
    tt.store %x, %2 : tensor<8x64x!tt.ptr<f32>, #d>
    tt.return
  }
  tt.func public @same_row(%p: !tt.ptr<f32>, %y: tensor<8x64x!tt.ptr<f64>, #d>, %at: tensor<8x64xi32, #d>) {
    %columns = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #columns>
    %rows = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32, #rows>
    %row = tt.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #columns> -> tensor<1x64xi32, #d>
    %column = tt.expand_dims %rows {axis = 1 : i32} : tensor<8xi32, #rows> -> tensor<8x1xi32, #d>
    %width = arith.constant dense<64> : tensor<8x1xi32, #d>
    %starts = arith.muli %column, %width : tensor<8x1xi32, #d>
    %all_rows = tt.broadcast %row : tensor<1x64xi32, #d> -> tensor<8x64xi32, #d>
    %all_starts = tt.broadcast %starts : tensor<8x1xi32, #d> -> tensor<8x64xi32, #d>
    %offsets = arith.addi %all_starts, %all_rows : tensor<8x64xi32, #d>
    %xs = tt.splat %p : !tt.ptr<f32> -> tensor<8x64x!tt.ptr<f32>, #d>
    %x = tt.addptr %xs, %offsets : tensor<8x64x!tt.ptr<f32>, #d>, tensor<8x64xi32, #d>
    %0 = tt.load %x : tensor<8x64x!tt.ptr<f32>, #d>
    %turned = tt.gather %0[%at] {axis = 1 : i32} : (tensor<8x64xf32, #d>, tensor<8x64xi32, #d>) -> tensor<8x64xf32, #d>
    %1 = arith.extf %turned : tensor<8x64xf32, #d> to tensor<8x64xf64, #d>
    tt.store %y, %1 : tensor<8x64x!tt.ptr<f64>, #d>
    %2 = arith.addf %0, %0 : tensor<8x64xf32, #d>
    tt.store %x, %2 : tensor<8x64x!tt.ptr<f32>, #d>
    tt.return
  }
  tt.func public @other_rows(%p: !tt.ptr<f32>, %y: tensor<8x64x!tt.ptr<f64>, #d>, %at: tensor<8x64xi32, #d>) {
    %columns = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #columns>
    %rows = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32, #rows>
    %row = tt.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #columns> -> tensor<1x64xi32, #d>
    %column = tt.expand_dims %rows {axis = 1 : i32} : tensor<8xi32, #rows> -> tensor<8x1xi32, #d>
    %width = arith.constant dense<64> : tensor<8x1xi32, #d>
    %starts = arith.muli %column, %width : tensor<8x1xi32, #d>
    %all_rows = tt.broadcast %row : tensor<1x64xi32, #d> -> tensor<8x64xi32, #d>
    %all_starts = tt.broadcast %starts : tensor<8x1xi32, #d> -> tensor<8x64xi32, #d>
    %offsets = arith.addi %all_starts, %all_rows : tensor<8x64xi32, #d>
    %xs = tt.splat %p : !tt.ptr<f32> -> tensor<8x64x!tt.ptr<f32>, #d>
    %x = tt.addptr %xs, %offsets : tensor<8x64x!tt.ptr<f32>, #d>, tensor<8x64xi32, #d>
    %0 = tt.load %x : tensor<8x64x!tt.ptr<f32>, #d>
    %turned = tt.gather %0[%at] {axis = 0 : i32} : (tensor<8x64xf32, #d>, tensor<8x64xi32, #d>) -> tensor<8x64xf32, #d>
    %1 = arith.extf %turned : tensor<8x64xf32, #d> to tensor<8x64xf64, #d>
    tt.store %y, %1 : tensor<8x64x!tt.ptr<f64>, #d>
    %2 = arith.addf %0, %0 : tensor<8x64xf32, #d>
    tt.store %x, %2 : tensor<8x64x!tt.ptr<f32>, #d>
    tt.return
  }
}
