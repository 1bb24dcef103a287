// RUN: mltriton opt %s -p form-nests,pack-operands,match-target-size,dce | filecheck %s
// An element that all lanes load from one address is loaded once for the chunks of a step, and what is computed from it
// is computed once; behind the end of the mask each chunk loads under its own.

// CHECK-LABEL: @scaled
// CHECK: scf.for
// CHECK: tt.load %{{.*}} : !tt.ptr<f32>
// CHECK-NEXT: math.exp2 %{{.*}} : f32
// CHECK-NOT: tt.load
// CHECK-COUNT-4: tile.store
// CHECK: scf.for
// CHECK: tt.load %{{.*}}, %{{.*}} : tensor<16x!tt.ptr<f32>>

// A volatile one is loaded for each chunk.
// CHECK-LABEL: @asked
// CHECK-COUNT-4: tt.load
#row = #ttg.blocked<{sizePerThread = [1024], threadsPerWarp = [1], warpsPerCTA = [1], order = [0]}>
#short = #ttg.blocked<{sizePerThread = [64], threadsPerWarp = [1], warpsPerCTA = [1], order = [0]}>
module attributes {mltriton.level = "warp", "ttg.num-warps" = 1 : i32, ttg.target = "cpu:avx512"} {
tt.func public @scaled(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %n: i32) {
  %i = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32, #row>
  %ns = tt.splat %n : i32 -> tensor<1024xi32, #row>
  %mask = arith.cmpi slt, %i, %ns : tensor<1024xi32, #row>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #row>
  %factor = tt.load %xs, %mask : tensor<1024x!tt.ptr<f32>, #row>
  %power = math.exp2 %factor : tensor<1024xf32, #row>
  %ys = tt.splat %y : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #row>
  %at = tt.addptr %ys, %i : tensor<1024x!tt.ptr<f32>, #row>, tensor<1024xi32, #row>
  tt.store %at, %power, %mask : tensor<1024x!tt.ptr<f32>, #row>
  tt.return
}
tt.func public @asked(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>) {
  %i = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #short>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #short>
  %factor = tt.load %xs {volatile = true} : tensor<64x!tt.ptr<f32>, #short>
  %ys = tt.splat %y : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #short>
  %at = tt.addptr %ys, %i : tensor<64x!tt.ptr<f32>, #short>, tensor<64xi32, #short>
  tt.store %at, %factor : tensor<64x!tt.ptr<f32>, #short>
  tt.return
}
}
