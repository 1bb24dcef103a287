// RUN: mltriton opt %s -p form-nests,pack-operands,match-target-size,dce | filecheck %s
// Where blocks lie in memory a row becomes chunks of the target's lanes. Nothing is stored between operations: the sum is
// carried by the loop over the chunks, whose first part lies inside the mask and takes none.

// CHECK-LABEL: @sum_of_a_row
// CHECK-NOT: tile.scratch
// CHECK: %[[INSIDE:.*]]:4 = scf.for
// CHECK: tile.load %{{.*}} : tensor<16xf32>
// CHECK: scf.for %{{.*}} iter_args(%{{.*}} = %[[INSIDE]]#0)
// CHECK: tile.load %{{.*}}, %{{.*}} : tensor<16xf32>
// CHECK: "tt.reduce"
// CHECK: tt.store
// CHECK-LABEL: @one_chunk
// CHECK-NOT: scf.for
// CHECK: %[[X:.*]] = tile.load %{{.*}} : tensor<16xf32>
// CHECK: %[[Y:.*]] = math.exp2 %[[X]]
// CHECK: tile.store %{{.*}}, %[[Y]] : tensor<16xf32>
#row = #ttg.blocked<{sizePerThread = [1024], threadsPerWarp = [1], warpsPerCTA = [1], order = [0]}>
#chunk = #ttg.blocked<{sizePerThread = [16], threadsPerWarp = [1], warpsPerCTA = [1], order = [0]}>
module attributes {mltriton.level = "warp", "ttg.num-warps" = 1 : i32, ttg.target = "cpu:avx512"} {
tt.func public @sum_of_a_row(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %n: i32) {
  %i = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32, #row>
  %ns = tt.splat %n : i32 -> tensor<1024xi32, #row>
  %mask = arith.cmpi slt, %i, %ns : tensor<1024xi32, #row>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #row>
  %at = tt.addptr %xs, %i : tensor<1024x!tt.ptr<f32>, #row>, tensor<1024xi32, #row>
  %row = tt.load %at, %mask : tensor<1024x!tt.ptr<f32>, #row>
  %sum = "tt.reduce"(%row) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tt.reduce.return %c : f32
  }) : (tensor<1024xf32, #row>) -> f32
  tt.store %y, %sum : !tt.ptr<f32>
  tt.return
}
tt.func public @one_chunk(%x: !tt.ptr<f32>) {
  %i = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32, #chunk>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>, #chunk>
  %at = tt.addptr %xs, %i : tensor<16x!tt.ptr<f32>, #chunk>, tensor<16xi32, #chunk>
  %row = tt.load %at : tensor<16x!tt.ptr<f32>, #chunk>
  %power = math.exp2 %row : tensor<16xf32, #chunk>
  tt.store %at, %power : tensor<16x!tt.ptr<f32>, #chunk>
  tt.return
}
}
