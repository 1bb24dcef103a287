// RUN: mltriton opt %s -p form-nests,pack-operands,match-target-size,dce,allocate-scratch | filecheck %s
// Where blocks lie in memory a dot is a micro-kernel. The left operand is read where it lies; 64 rows need the right one
// so often that it is copied first, to where its rows are near each other; the sum is a tile, which the store reads row
// by row.

// CHECK: tile.scratch_bytes = 40960 : i32
// CHECK: %[[SUM:.*]] = tile.scratch {bytes = 20480 : i32, offset = 0 : i32} : !tt.ptr<f32, 5>
// CHECK: %[[PACKED:.*]] = tile.scratch {bytes = 20480 : i32, offset = 20480 : i32} : !tt.ptr<f32, 5>
// CHECK: scf.for
// CHECK: tile.load %{{.*}} : tensor<16xf32>
// CHECK: tile.store %{{.*}} {align = 64 : i32} : tensor<16xf32>
// CHECK: tile.dot %a, %{{.*}}, %[[PACKED]], %{{.*}}, %[[SUM]], {{.*}} {m = 64 : i32, n = 64 : i32} : !tt.ptr<f32>, !tt.ptr<f32, 5>, !tt.ptr<f32, 5>
// CHECK: scf.for
// CHECK: tile.load %{{.*}} {align = 64 : i32} : tensor<16xf32>
// CHECK: tile.store %{{.*}} : tensor<16xf32>
#c = #ttg.blocked<{sizePerWarp = [64, 64], warpsPerCTA = [1, 1], order = [1, 0]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #c}>
#b = #ttg.dot_op<{opIdx = 1, parent = #c}>
module attributes {mltriton.level = "warp", "ttg.num-warps" = 1 : i32, ttg.target = "cpu:avx512"} {
tt.func public @product(%a: !tt.ptr<f32>, %b: !tt.ptr<f32>, %c: !tt.ptr<f32>) {
  %n = arith.constant 64 : i64
  %wide = arith.constant 4096 : i64
  %c0 = arith.constant 0 : i32
  %one = arith.constant 1 : i64
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #c>
  %left = tt.make_tensor_ptr %a, [%n, %n], [%n, %one], [%c0, %c0] {order = array<i32: 1, 0>} : !tt.ptr<tensor<64x64xf32, #a>>
  %right = tt.make_tensor_ptr %b, [%n, %n], [%wide, %one], [%c0, %c0] {order = array<i32: 1, 0>} : !tt.ptr<tensor<64x64xf32, #b>>
  %into = tt.make_tensor_ptr %c, [%n, %n], [%n, %one], [%c0, %c0] {order = array<i32: 1, 0>} : !tt.ptr<tensor<64x64xf32, #c>>
  %x = tt.load %left : !tt.ptr<tensor<64x64xf32, #a>>
  %y = tt.load %right : !tt.ptr<tensor<64x64xf32, #b>>
  %z = tt.dot %x, %y, %zero : tensor<64x64xf32, #a> * tensor<64x64xf32, #b> -> tensor<64x64xf32, #c>
  tt.store %into, %z : !tt.ptr<tensor<64x64xf32, #c>>
  tt.return
}
}
