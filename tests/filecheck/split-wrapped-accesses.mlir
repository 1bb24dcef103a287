// RUN: mltriton opt %s -p split-wrapped-accesses,canonicalize,cse,dce | filecheck %s
// Columns of consecutive numbers follow each other up to the lane of the jump, and again from there on: two masked
// accesses. Rows are one scalar on each side; columns of fewer numbers than lanes stay a gather.

// CHECK-LABEL: @columns
// CHECK: arith.remsi %first
// CHECK: arith.cmpi sle, %first
// CHECK: arith.select
// CHECK: arith.cmpi slt
// CHECK: [[FRONT:%.+]] = tile.load {{%.+}}, {{%.+}} : tensor<16xf32>
// CHECK: tile.load {{%.+}}, {{%.+}}, [[FRONT]] : tensor<16xf32>
// CHECK: tile.store
// CHECK: tile.store
// CHECK-NOT: tensor<16x!tt.ptr<f32>>
// CHECK-LABEL: @rows
// CHECK: tt.load {{%.+}} : !tt.ptr<f32>
// CHECK: tt.load {{%.+}} : !tt.ptr<f32>
// CHECK: arith.select {{.*}} : tensor<16xi1>, tensor<16xf32>
// CHECK-LABEL: @short
// CHECK: tt.load {{%.+}} : tensor<16x!tt.ptr<f32>>
// CHECK-LABEL: @masked_rows
// CHECK: tt.load {{%.+}} : tensor<16x!tt.ptr<f32>>
module attributes {mltriton.level = "intrinsic", "ttg.num-warps" = 1 : i32, ttg.target = "cpu:avx512"} {
tt.func public @columns(%x: !tt.ptr<f32>, %out: !tt.ptr<f32>, %first: i32) {
  %range = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %begin = tt.splat %first : i32 -> tensor<16xi32>
  %number = arith.addi %begin, %range : tensor<16xi32>
  %d = arith.constant dense<65> : tensor<16xi32>
  %column = arith.remsi %number, %d : tensor<16xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %from = tt.addptr %xs, %column : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %value = tt.load %from : tensor<16x!tt.ptr<f32>>
  %outs = tt.splat %out : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %to = tt.addptr %outs, %column : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  tt.store %to, %value : tensor<16x!tt.ptr<f32>>
  tt.return
}
tt.func public @rows(%x: !tt.ptr<f32>, %out: !tt.ptr<f32>, %first: i32) {
  %range = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %begin = tt.splat %first : i32 -> tensor<16xi32>
  %number = arith.addi %begin, %range : tensor<16xi32>
  %d = arith.constant dense<65> : tensor<16xi32>
  %row = arith.divsi %number, %d : tensor<16xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %from = tt.addptr %xs, %row : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %value = tt.load %from : tensor<16x!tt.ptr<f32>>
  tile.store %out, %value : tensor<16xf32>
  tt.return
}
tt.func public @short(%x: !tt.ptr<f32>, %out: !tt.ptr<f32>, %first: i32) {
  %range = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %begin = tt.splat %first : i32 -> tensor<16xi32>
  %number = arith.addi %begin, %range : tensor<16xi32>
  %d = arith.constant dense<15> : tensor<16xi32>
  %column = arith.remsi %number, %d : tensor<16xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %from = tt.addptr %xs, %column : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %value = tt.load %from : tensor<16x!tt.ptr<f32>>
  tile.store %out, %value : tensor<16xf32>
  tt.return
}
tt.func public @masked_rows(%x: !tt.ptr<f32>, %out: !tt.ptr<f32>, %first: i32, %mask: tensor<16xi1>) {
  %range = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %begin = tt.splat %first : i32 -> tensor<16xi32>
  %number = arith.addi %begin, %range : tensor<16xi32>
  %d = arith.constant dense<65> : tensor<16xi32>
  %row = arith.divsi %number, %d : tensor<16xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %from = tt.addptr %xs, %row : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %value = tt.load %from, %mask : tensor<16x!tt.ptr<f32>>
  tile.store %out, %value : tensor<16xf32>
  tt.return
}
}
