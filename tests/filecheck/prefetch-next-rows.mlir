// RUN: mltriton opt %s -p "prefetch-next-rows,dce" | filecheck %s
// The loop that stores a row asks for what the first loop will load of the next one: of the next program or the next
// iteration, once for each cache line. What is the same for all rows is not asked for, nor what a row's address is
// loaded for, and nothing is where one loop does all.

// CHECK-LABEL: @programs
// CHECK: [[ID:%.+]] = tt.get_program_id x
// CHECK: scf.for
// CHECK: [[COUNT:%.+]] = tt.get_num_programs x
// CHECK: [[NEXT:%.+]] = arith.addi [[ID]], %{{.+}} : i32
// CHECK: [[INSIDE:%.+]] = arith.cmpi slt, [[NEXT]], [[COUNT]]
// CHECK: [[ROW:%.+]] = arith.select [[INSIDE]], [[NEXT]], [[ID]]
// CHECK: [[START:%.+]] = arith.muli [[ROW]], %stride
// CHECK: [[FROM:%.+]] = tt.addptr %x, [[START]]
// CHECK: scf.for [[J:%.+]] = %c0 to %c640 step %c32
// CHECK: [[AT:%.+]] = tt.addptr [[FROM]], [[J]]
// CHECK: tile.store
// CHECK-NOT: tile.prefetch %{{.+}} {write
// CHECK: tile.prefetch [[AT]] : !tt.ptr<bf16>
// CHECK-NOT: tile.prefetch
// CHECK-LABEL: @iterations
// CHECK: scf.for [[R:%.+]] = %first to %rows step %programs
// CHECK: [[NEXT:%.+]] = arith.addi [[R]], %programs
// CHECK: [[INSIDE:%.+]] = arith.cmpi slt, [[NEXT]], %rows
// CHECK: [[ROW:%.+]] = arith.select [[INSIDE]], [[NEXT]], [[R]]
// CHECK: [[FROM:%.+]] = tt.addptr %x, [[ROW]]
// CHECK: tt.addptr [[FROM]]
// CHECK: tile.prefetch
// CHECK-LABEL: @by_a_table
// CHECK-NOT: tile.prefetch
// CHECK-LABEL: @one_loop
// CHECK-NOT: tile.prefetch
module attributes {mltriton.level = "intrinsic", "ttg.num-warps" = 1 : i32, ttg.target = "cpu:avx512"} {
tt.func public @programs(%x: !tt.ptr<bf16>, %w: !tt.ptr<bf16>, %y: !tt.ptr<bf16>, %stride: i32) {
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %c32 = arith.constant 32 : i32
  %c640 = arith.constant 640 : i32
  %zero = arith.constant dense<0.0> : tensor<16xbf16>
  %row = tt.get_program_id x : i32
  %start = arith.muli %row, %stride : i32
  %from = tt.addptr %x, %start : !tt.ptr<bf16>, i32
  %sums:2 = scf.for %i = %c0 to %c640 step %c32 iter_args(%s = %zero, %t = %zero) -> (tensor<16xbf16>, tensor<16xbf16>) : i32 {
    %at = tt.addptr %from, %i : !tt.ptr<bf16>, i32
    %a = tile.load %at : tensor<16xbf16>
    %behind = tt.addptr %at, %c16 : !tt.ptr<bf16>, i32
    %b = tile.load %behind : tensor<16xbf16>
    %weights = tt.addptr %w, %i : !tt.ptr<bf16>, i32
    %c = tile.load %weights : tensor<16xbf16>
    %d = arith.mulf %a, %c : tensor<16xbf16>
    %e = arith.addf %s, %d : tensor<16xbf16>
    %f = arith.addf %t, %b : tensor<16xbf16>
    scf.yield %e, %f : tensor<16xbf16>, tensor<16xbf16>
  }
  %sum = arith.addf %sums#0, %sums#1 : tensor<16xbf16>
  %to = tt.addptr %y, %start : !tt.ptr<bf16>, i32
  scf.for %j = %c0 to %c640 step %c32 : i32 {
    %at = tt.addptr %to, %j : !tt.ptr<bf16>, i32
    tile.store %at, %sum : tensor<16xbf16>
  }
  tt.return
}
tt.func public @iterations(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %first: i32, %rows: i32, %programs: i32) {
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %c640 = arith.constant 640 : i32
  %zero = arith.constant dense<0.0> : tensor<16xf32>
  scf.for %row = %first to %rows step %programs : i32 {
    %from = tt.addptr %x, %row : !tt.ptr<f32>, i32
    %sum = scf.for %i = %c0 to %c640 step %c16 iter_args(%s = %zero) -> (tensor<16xf32>) : i32 {
      %at = tt.addptr %from, %i : !tt.ptr<f32>, i32
      %a = tile.load %at : tensor<16xf32>
      %b = arith.addf %s, %a : tensor<16xf32>
      scf.yield %b : tensor<16xf32>
    }
    %to = tt.addptr %y, %row : !tt.ptr<f32>, i32
    scf.for %j = %c0 to %c640 step %c16 : i32 {
      %at = tt.addptr %to, %j : !tt.ptr<f32>, i32
      tile.store %at, %sum : tensor<16xf32>
    }
  }
  tt.return
}
tt.func public @by_a_table(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %table: !tt.ptr<i32>) {
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %c640 = arith.constant 640 : i32
  %zero = arith.constant dense<0.0> : tensor<16xf32>
  %row = tt.get_program_id x : i32
  %entry = tt.addptr %table, %row : !tt.ptr<i32>, i32
  %start = tt.load %entry : !tt.ptr<i32>
  %from = tt.addptr %x, %start : !tt.ptr<f32>, i32
  %sum = scf.for %i = %c0 to %c640 step %c16 iter_args(%s = %zero) -> (tensor<16xf32>) : i32 {
    %at = tt.addptr %from, %i : !tt.ptr<f32>, i32
    %a = tile.load %at : tensor<16xf32>
    %b = arith.addf %s, %a : tensor<16xf32>
    scf.yield %b : tensor<16xf32>
  }
  scf.for %j = %c0 to %c640 step %c16 : i32 {
    %at = tt.addptr %y, %j : !tt.ptr<f32>, i32
    tile.store %at, %sum : tensor<16xf32>
  }
  tt.return
}
tt.func public @one_loop(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>) {
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %c640 = arith.constant 640 : i32
  %row = tt.get_program_id x : i32
  %from = tt.addptr %x, %row : !tt.ptr<f32>, i32
  %to = tt.addptr %y, %row : !tt.ptr<f32>, i32
  scf.for %j = %c0 to %c640 step %c16 : i32 {
    %at = tt.addptr %from, %j : !tt.ptr<f32>, i32
    %a = tile.load %at : tensor<16xf32>
    %there = tt.addptr %to, %j : !tt.ptr<f32>, i32
    tile.store %there, %a : tensor<16xf32>
  }
  tt.return
}
}
