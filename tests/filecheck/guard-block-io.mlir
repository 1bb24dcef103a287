// RUN: mltriton opt %s -p guard-block-io | filecheck %s
// Rows so many elements apart as memory says: asked before the loop, which stands there twice. A matrix of which the
// launch knows everything is asked nothing.

// CHECK-LABEL: @rows
// CHECK: %[[PITCH:.*]] = tt.load %table
// CHECK: %[[BYTES:.*]] = arith.muli %[[PITCH]], %c4
// CHECK: arith.cmpi sge, %[[BYTES]], %c64
// CHECK: arith.cmpi eq
// CHECK: %[[SUM:.*]] = scf.if
// CHECK: scf.for
// CHECK: tt.load {{.*}} {ttig.block_io}
// CHECK: } else {
// CHECK: scf.for
// CHECK: tt.load %{{[a-z0-9_]*}} : !tt.ptr
// CHECK: }
// CHECK: %here = tt.make_tensor_ptr
// CHECK-NEXT: tt.store %here, %[[SUM]] : !tt.ptr
#b = #ttg.linear<{register = [[1, 0], [2, 0], [4, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8]], warp = [], block = []}>
module attributes {mltriton.level = "intrinsic", "ttg.num-warps" = 8 : i32, ttg.target = "xe:pvc"} {
tt.func public @rows(%p: !tt.ptr<f32> {tt.divisibility = 64 : i32}, %q: !tt.ptr<f32>, %table: !tt.ptr<i64>) {
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %c512 = arith.constant 512 : i32
  %one = arith.constant 1 : i64
  %size = arith.constant 512 : i64
  %zero = arith.constant dense<0.0> : tensor<8x16xf32, #b>
  %pitch = tt.load %table : !tt.ptr<i64>
  %sum = scf.for %k = %c0 to %c512 step %c16 iter_args(%before = %zero) -> (tensor<8x16xf32, #b>) : i32 {
    %there = tt.make_tensor_ptr %p, [%size, %size], [%pitch, %one], [%c0, %k] {order = array<i32: 1, 0>} : <tensor<8x16xf32, #b>>
    %x = tt.load %there : !tt.ptr<tensor<8x16xf32, #b>>
    %next = arith.addf %before, %x : tensor<8x16xf32, #b>
    scf.yield %next : tensor<8x16xf32, #b>
  }
  %here = tt.make_tensor_ptr %q, [%size, %size], [%size, %one], [%c0, %c0] {order = array<i32: 1, 0>} : <tensor<8x16xf32, #b>>
  tt.store %here, %sum : !tt.ptr<tensor<8x16xf32, #b>>
  tt.return
}

// Columns that differ between warps: asked, but not where warps meet in a loop, which all of them must then run alike.

// CHECK-LABEL: @apart
// CHECK: scf.if
// CHECK: {ttig.block_io}
// CHECK-LABEL: @together
// CHECK-NOT: scf.if
// CHECK-NOT: ttig.block_io
// CHECK: gpu.barrier
tt.func public @apart(%p: !tt.ptr<f16> {tt.divisibility = 64 : i32}, %q: !tt.ptr<f16>) {
  %c0 = arith.constant 0 : i32
  %one = arith.constant 1 : i64
  %size = arith.constant 512 : i64
  %warp = gpu.subgroup_id : index
  %number = arith.index_cast %warp : index to i32
  %two = arith.constant 2 : i32
  %id = arith.remui %number, %two : i32
  %there = tt.make_tensor_ptr %p, [%size, %size], [%size, %one], [%c0, %id] {order = array<i32: 1, 0>} : <tensor<8x16xf16, #b>>
  %x = tt.load %there : !tt.ptr<tensor<8x16xf16, #b>>
  %here = tt.make_tensor_ptr %q, [%size, %size], [%size, %one], [%c0, %c0] {order = array<i32: 1, 0>} : <tensor<8x16xf16, #b>>
  tt.store %here, %x : !tt.ptr<tensor<8x16xf16, #b>>
  tt.return
}
tt.func public @together(%p: !tt.ptr<f16> {tt.divisibility = 64 : i32}, %q: !tt.ptr<f16>) {
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %c512 = arith.constant 512 : i32
  %one = arith.constant 1 : i64
  %size = arith.constant 512 : i64
  %zero = arith.constant dense<0.0> : tensor<8x16xf16, #b>
  %warp = gpu.subgroup_id : index
  %number = arith.index_cast %warp : index to i32
  %two = arith.constant 2 : i32
  %id = arith.remui %number, %two : i32
  %sum = scf.for %k = %c0 to %c512 step %c16 iter_args(%before = %zero) -> (tensor<8x16xf16, #b>) : i32 {
    %there = tt.make_tensor_ptr %p, [%size, %size], [%size, %one], [%k, %id] {order = array<i32: 1, 0>} : <tensor<8x16xf16, #b>>
    %x = tt.load %there : !tt.ptr<tensor<8x16xf16, #b>>
    gpu.barrier
    %next = arith.addf %before, %x : tensor<8x16xf16, #b>
    scf.yield %next : tensor<8x16xf16, #b>
  }
  %here = tt.make_tensor_ptr %q, [%size, %size], [%size, %one], [%c0, %c0] {order = array<i32: 1, 0>} : <tensor<8x16xf16, #b>>
  tt.store %here, %sum : !tt.ptr<tensor<8x16xf16, #b>>
  tt.return
}
}
