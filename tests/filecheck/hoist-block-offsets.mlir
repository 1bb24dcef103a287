// RUN: mltriton opt %s -p hoist-block-offsets | filecheck %s
// What the place of a block in a loop is made of and the loop does not change moves in front of it, out of a branch,
// too; what the loop's counter is part of stays, and so does what is not a place.

// CHECK-LABEL: @rows
// CHECK: arith.muli %n, %m
// CHECK-NEXT: arith.addi %n, %m
// CHECK-NEXT: scf.for
// CHECK-NEXT: arith.addi %i, %n
// CHECK-NEXT: arith.subi %n, %m
// CHECK-NEXT: tt.make_tensor_ptr
// CHECK-NEXT: scf.if
// CHECK-NEXT: tt.make_tensor_ptr
#b = #ttg.linear<{register = [[1, 0], [2, 0], [4, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8]], warp = [], block = []}>
module attributes {mltriton.level = "intrinsic", "ttg.num-warps" = 1 : i32, ttg.target = "xe:pvc"} {
tt.func public @rows(%p: !tt.ptr<f32>, %n: i32, %m: i32, %size: i64, %flag: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %one = arith.constant 1 : i64
  scf.for %i = %c0 to %n step %c1 : i32 {
    %row = arith.addi %i, %n : i32
    %column = arith.muli %n, %m : i32
    %other = arith.subi %n, %m : i32
    %block = tt.make_tensor_ptr %p, [%size, %size], [%size, %one], [%row, %column] {order = array<i32: 1, 0>} : <tensor<8x16xf32, #b>>
    scf.if %flag {
      %far = arith.addi %n, %m : i32
      %next = tt.make_tensor_ptr %p, [%size, %size], [%size, %one], [%row, %far] {order = array<i32: 1, 0>} : <tensor<8x16xf32, #b>>
      %value = tt.load %next : !tt.ptr<tensor<8x16xf32, #b>>
      tt.store %block, %value : !tt.ptr<tensor<8x16xf32, #b>>
    }
    %used = arith.addi %other, %row : i32
    tt.assert %flag, "never" : i1
    scf.yield
  }
  tt.return
}
}
