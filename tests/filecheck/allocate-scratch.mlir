// RUN: mltriton opt %s -p allocate-scratch | filecheck %s
// Parts of scratch memory share a place where they are not needed at the same time; what a loop reads from before it
// stays for the whole loop, and so does what is kept, or stored as an address.

// CHECK: tile.scratch_bytes = 576 : i32
// CHECK-LABEL: @one_after_the_other
// CHECK: tile.scratch {bytes = 64 : i32, offset = 0 : i32}
// CHECK: tile.scratch {bytes = 128 : i32, offset = 0 : i32}
// CHECK-LABEL: @in_a_loop
// CHECK: %[[BEFORE:.*]] = tile.scratch {bytes = 256 : i32, offset = 0 : i32}
// CHECK: %[[FIRST:.*]] = tile.scratch {bytes = 64 : i32, offset = [[INSIDE:[0-9]+]] : i32}
// CHECK: %[[SECOND:.*]] = tile.scratch {bytes = 64 : i32, offset = [[INSIDE]] : i32}
// CHECK: %[[KEPT:.*]] = tile.scratch {bytes = 256 : i32, kept = true, offset = 256 : i32}
// CHECK-LABEL: @addresses
// CHECK: tile.scratch {bytes = 64 : i32, offset = 0 : i32}
// CHECK: tile.scratch {bytes = 64 : i32, offset = 64 : i32}
// CHECK: tile.scratch {bytes = 64 : i32, offset = 128 : i32}
module attributes {mltriton.level = "intrinsic", "ttg.num-warps" = 1 : i32, ttg.target = "cpu:avx512"} {
tt.func public @one_after_the_other(%x: tensor<16xf32>) {
  %a = tile.scratch {bytes = 64 : i32} : !tt.ptr<f32, 5>
  %b = tile.scratch {bytes = 128 : i32} : !tt.ptr<f32, 5>
  tile.store %a, %x : tensor<16xf32>
  %y = tile.load %a : tensor<16xf32>
  tile.store %b, %y : tensor<16xf32>
  tt.return
}
tt.func public @in_a_loop(%x: tensor<16xf32>, %n: i32) {
  %before = tile.scratch {bytes = 256 : i32} : !tt.ptr<f32, 5>
  %first = tile.scratch {bytes = 64 : i32} : !tt.ptr<f32, 5>
  %second = tile.scratch {bytes = 64 : i32} : !tt.ptr<f32, 5>
  %kept = tile.scratch {bytes = 256 : i32, kept = true} : !tt.ptr<f32, 5>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  tile.store %before, %x : tensor<16xf32>
  scf.for %i = %c0 to %n step %c1 : i32 {
    %y = tile.load %before : tensor<16xf32>
    tile.store %first, %y : tensor<16xf32>
    %z = tile.load %first : tensor<16xf32>
    tile.store %second, %z : tensor<16xf32>
    tile.store %kept, %z : tensor<16xf32>
    scf.yield
  }
  tt.return
}
tt.func public @addresses(%x: tensor<16xf32>) {
  %row = tile.scratch {bytes = 64 : i32} : !tt.ptr<f32, 5>
  %rows = tile.scratch {bytes = 64 : i32} : !tt.ptr<!tt.ptr<f32, 5>, 5>
  %other = tile.scratch {bytes = 64 : i32} : !tt.ptr<f32, 5>
  tile.store %row, %x : tensor<16xf32>
  tt.store %rows, %row : !tt.ptr<!tt.ptr<f32, 5>, 5>
  tile.store %other, %x : tensor<16xf32>
  %y = tt.load %rows : !tt.ptr<!tt.ptr<f32, 5>, 5>
  tile.store %y, %x : tensor<16xf32>
  tt.return
}
}
