// RUN: mltriton opt %s -p "assign-layouts,cse,assign-lanes,dce,pipeline-loads{stages=3},dce,canonicalize,cse" | filecheck %s
// An operand that is found through memory which the loop only reads is copied ahead, too; what says where it lies is
// looked up when its copy starts, where there is such an iteration.

// CHECK-LABEL: @product
// CHECK: %[[B:.*]] = ttg.local_alloc : () -> !ttg.memdesc<3x32x64xf16
// CHECK: %[[FIRST:.*]] = arith.cmpi slt
// CHECK: tt.load %table, %[[FIRST]] : !tt.ptr<i32>
// CHECK: ttg.async_commit_group
// CHECK: scf.for
// CHECK-NEXT: ttg.async_wait {num = 1 : i32}
// CHECK: %[[HAPPENS:.*]] = arith.cmpi slt
// CHECK: %[[PLACE:.*]] = tt.addptr %table
// CHECK: %[[ROW:.*]] = tt.load %[[PLACE]], %[[HAPPENS]] : !tt.ptr<i32>
// CHECK: tt.splat %[[ROW]]
// CHECK: %[[THERE:.*]] = ttg.memdesc_subview %[[B]]
// CHECK: ttg.async_copy_global_to_local %{{.*}}, %[[THERE]]
// CHECK-NEXT: ttg.async_commit_group
// CHECK-NOT: tt.load
// CHECK: tt.dot
// CHECK: ttg.async_wait
module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "mma:ahead"} {
tt.func public @product(%a: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %b: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %table: !tt.ptr<i32>, %c: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %steps: i32) {
  %cst = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
  %c64 = arith.constant dense<64> : tensor<64x1xi32>
  %c64b = arith.constant dense<64> : tensor<32x1xi32>
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %m = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %k = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
  %rows = tt.expand_dims %m {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %starts = arith.muli %rows, %c64 : tensor<64x1xi32>
  %columns = tt.expand_dims %k {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %s2 = tt.broadcast %starts : tensor<64x1xi32> -> tensor<64x32xi32>
  %k2 = tt.broadcast %columns : tensor<1x32xi32> -> tensor<64x32xi32>
  %at = arith.addi %s2, %k2 : tensor<64x32xi32>
  %as = tt.splat %a : !tt.ptr<f16> -> tensor<64x32x!tt.ptr<f16>>
  %first = tt.addptr %as, %at : tensor<64x32x!tt.ptr<f16>>, tensor<64x32xi32>
  %step = arith.constant dense<32> : tensor<64x32xi32>
  %bs = tt.splat %b : !tt.ptr<f16> -> tensor<32x64x!tt.ptr<f16>>
  %n = tt.expand_dims %m {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %n2 = tt.broadcast %n : tensor<1x64xi32> -> tensor<32x64xi32>
  %kr = tt.expand_dims %k {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
  %one = arith.constant 1 : i32
  %r:2 = scf.for %i = %c0 to %steps step %one iter_args(%acc = %cst, %pa = %first) -> (tensor<64x64xf32>, tensor<64x32x!tt.ptr<f16>>) : i32 {
    %x = tt.load %pa : tensor<64x32x!tt.ptr<f16>>
    %place = tt.addptr %table, %i : !tt.ptr<i32>, i32
    %row = tt.load %place : !tt.ptr<i32>
    %row1 = tt.splat %row : i32 -> tensor<32x1xi32>
    %there = arith.addi %row1, %kr : tensor<32x1xi32>
    %line = arith.muli %there, %c64b : tensor<32x1xi32>
    %line2 = tt.broadcast %line : tensor<32x1xi32> -> tensor<32x64xi32>
    %bat = arith.addi %line2, %n2 : tensor<32x64xi32>
    %pb = tt.addptr %bs, %bat : tensor<32x64x!tt.ptr<f16>>, tensor<32x64xi32>
    %y = tt.load %pb : tensor<32x64x!tt.ptr<f16>>
    %d = tt.dot %x, %y, %acc : tensor<64x32xf16> * tensor<32x64xf16> -> tensor<64x64xf32>
    %next = tt.addptr %pa, %step : tensor<64x32x!tt.ptr<f16>>, tensor<64x32xi32>
    scf.yield %d, %next : tensor<64x64xf32>, tensor<64x32x!tt.ptr<f16>>
  }
  %cs = tt.splat %c : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
  %q = tt.broadcast %starts : tensor<64x1xi32> -> tensor<64x64xi32>
  %w = tt.broadcast %n : tensor<1x64xi32> -> tensor<64x64xi32>
  %e = arith.addi %q, %w : tensor<64x64xi32>
  %out = tt.addptr %cs, %e : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
  tt.store %out, %r#0 : tensor<64x64x!tt.ptr<f32>>
  tt.return
}
}
