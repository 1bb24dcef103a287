module attributes {mltriton.level = "intrinsic"} {
  tt.func public @pieces(%x: tensor<32x32xf16>, %p: !tt.ptr<tensor<16x32xf16>>) {
    %0 = ttig.extract %x[3] : tensor<32x32xf16> -> tensor<16x16xf16>
    %1 = ttig.glue %0, %0 : (tensor<16x16xf16>, tensor<16x16xf16>) -> tensor<16x32xf16>
    %2 = gpu.subgroup_id : index
    ttig.prefetch %p : !tt.ptr<tensor<16x32xf16>>
    ttig.barrier_arrive
    ttig.barrier_wait
    tt.return
  }
  tt.func public @chunks(%p: !tt.ptr<f32>, %lines: !tt.ptr<!tt.ptr<f32>>, %m: tensor<4xi1>, %s: i64, %c: i1, %i: i32) {
    %0 = tile.scratch {bytes = 256 : i32, offset = 64 : i32} : !tt.ptr<f32, 5>
    %1 = tile.load %p : tensor<4xf32>
    %2 = tile.load %p, %m, %1 {align = 16 : i32, nontemporal = true} : tensor<4xf32>
    tile.store %0, %2 {align = 64 : i32} : tensor<4xf32>
    tile.store %0, %2, %m : tensor<4xf32>
    %3:4 = tile.transpose %1, %2, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
    %4 = tile.interleave %1, %2 : tensor<4xf32>, tensor<4xf32> -> tensor<8xf32>
    %5 = tile.lane %4[%i] : tensor<8xf32> -> f32
    tile.dot %p, %s, %p, %s, %0, %s, %s, %c {m = 6 : i32, n = 16 : i32} : !tt.ptr<f32>, !tt.ptr<f32>, !tt.ptr<f32, 5>
    tile.indirect_dot %p, %s, %s, %lines, %0, %s, %s, %c {ahead = 16 : i32, b_layout = 1 : i32, k = 32 : i32, m = 4 : i32, n = 8 : i32} : !tt.ptr<f32>, !tt.ptr<!tt.ptr<f32>>, !tt.ptr<f32, 5>
    tile.prefetch %p : !tt.ptr<f32>
    tile.print " x: ", %5 at [%i, %i] {widths = array<i32: 2, 2>} : f32
    tile.print " x: ", %1 at [%i] {hex = true, widths = array<i32: 1>} : tensor<4xf32>
    tt.return
  }
}
