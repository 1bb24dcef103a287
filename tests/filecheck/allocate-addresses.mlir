// RUN: mltriton opt %s -p allocate-addresses | filecheck %s
// Blocks of a matrix that a loop moves along its rows: the first has the address that is there anyway, and each other
// place one of its own. One that is loaded again has the same, one of another matrix is its first, and one that stays
// needs none.

// CHECK-LABEL: @steps
// CHECK: tt.load %first : !tt.ptr
// CHECK: tt.load %second {ttig.address = 1 : i32}
// CHECK: tt.load %third {ttig.address = 2 : i32}
// CHECK: tt.load %second {ttig.address = 1 : i32}
// CHECK: tt.load %other : !tt.ptr
// CHECK: tt.load %stays : !tt.ptr
#b = #ttg.linear<{register = [[1, 0], [2, 0], [4, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8]], warp = [], block = []}>
module attributes {mltriton.level = "intrinsic", "ttg.num-warps" = 1 : i32, ttg.target = "xe:pvc", ttig.register_mode = 256 : i32} {
tt.func public @steps(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %size: i64, %out: !tt.ptr<f32>) {
  %c0 = arith.constant 0 : i32
  %c8 = arith.constant 8 : i32
  %c16 = arith.constant 16 : i32
  %c512 = arith.constant 512 : i32
  %one = arith.constant 1 : i64
  scf.for %k = %c0 to %c512 step %c16 : i32 {
    %first = tt.make_tensor_ptr %p, [%size, %size], [%size, %one], [%c0, %k] {order = array<i32: 1, 0>} : <tensor<8x16xf32, #b>>
    %a = tt.load %first : !tt.ptr<tensor<8x16xf32, #b>>
    %second = tt.make_tensor_ptr %p, [%size, %size], [%size, %one], [%c8, %k] {order = array<i32: 1, 0>} : <tensor<8x16xf32, #b>>
    %b = tt.load %second : !tt.ptr<tensor<8x16xf32, #b>>
    %third = tt.make_tensor_ptr %p, [%size, %size], [%size, %one], [%c16, %k] {order = array<i32: 1, 0>} : <tensor<8x16xf32, #b>>
    %c = tt.load %third : !tt.ptr<tensor<8x16xf32, #b>>
    %d = tt.load %second : !tt.ptr<tensor<8x16xf32, #b>>
    %other = tt.make_tensor_ptr %q, [%size, %size], [%size, %one], [%c8, %k] {order = array<i32: 1, 0>} : <tensor<8x16xf32, #b>>
    %e = tt.load %other : !tt.ptr<tensor<8x16xf32, #b>>
    %stays = tt.make_tensor_ptr %p, [%size, %size], [%size, %one], [%c8, %c8] {order = array<i32: 1, 0>} : <tensor<8x16xf32, #b>>
    %f = tt.load %stays : !tt.ptr<tensor<8x16xf32, #b>>
    scf.yield
  }
  tt.return
}
}
