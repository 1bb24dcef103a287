// RUN: mltriton opt %s -p form-nests | filecheck %s
// What is loaded before a barrier, a release, or a wait for other programs was in memory then: it is stored before, and
// not loaded where it is used.

// A barrier ends a nest, too.
// CHECK-LABEL: @barrier
// CHECK: %[[X:.*]] = tt.load
// CHECK-NEXT: tile.nest loops(0) {
// CHECK-NEXT: tile.fill %[[X]]
// CHECK-NEXT: }
// CHECK: gpu.barrier
// CHECK: tile.nest loops(0) {
// CHECK-NOT: tile.fill
// CHECK: tt.store

// CHECK-LABEL: @release
// CHECK: %[[X:.*]] = tt.load
// CHECK: tile.fill %[[X]]
// CHECK: tt.atomic_rmw exch, release
// CHECK: tt.store

// CHECK-LABEL: @wait
// CHECK: %[[X:.*]] = tt.load
// CHECK: tile.fill %[[X]]
// CHECK: scf.while
// CHECK: tt.store

// An update that orders nothing may be passed.
// CHECK-LABEL: @relaxed
// CHECK-NOT: tile.fill
// CHECK: tt.store

// What is volatile is loaded once.
// CHECK-LABEL: @volatile
// CHECK: tile.fill
// CHECK: tt.store
// CHECK: tt.store

#d = #ttg.blocked<{sizePerWarp = [64], warpsPerCTA = [1], order = [0]}>
module attributes {mltriton.level = "warp", "ttg.num-warps" = 1 : i32, ttg.target = "cpu:avx2"} {
  tt.func public @barrier(%x: tensor<64x!tt.ptr<f32>, #d>, %y: tensor<64x!tt.ptr<f32>, #d>) {
    %0 = tt.load %x : tensor<64x!tt.ptr<f32>, #d>
    gpu.barrier
    tt.store %y, %0 : tensor<64x!tt.ptr<f32>, #d>
    tt.return
  }
  tt.func public @release(%x: tensor<64x!tt.ptr<f32>, #d>, %y: tensor<64x!tt.ptr<f32>, #d>, %lock: !tt.ptr<i32>) {
    %zero = arith.constant 0 : i32
    %0 = tt.load %x : tensor<64x!tt.ptr<f32>, #d>
    %1 = tt.atomic_rmw exch, release, gpu, %lock, %zero : (!tt.ptr<i32>, i32) -> i32
    tt.store %y, %0 : tensor<64x!tt.ptr<f32>, #d>
    tt.return
  }
  tt.func public @wait(%x: tensor<64x!tt.ptr<f32>, #d>, %y: tensor<64x!tt.ptr<f32>, #d>, %lock: !tt.ptr<i32>) {
    %zero = arith.constant 0 : i32
    %0 = tt.load %x : tensor<64x!tt.ptr<f32>, #d>
    scf.while : () -> () {
      %1 = tt.atomic_rmw add, acquire, gpu, %lock, %zero : (!tt.ptr<i32>, i32) -> i32
      %2 = arith.cmpi slt, %1, %zero : i32
      scf.condition(%2)
    } do {
      scf.yield
    }
    tt.store %y, %0 : tensor<64x!tt.ptr<f32>, #d>
    tt.return
  }
  tt.func public @relaxed(%x: tensor<64x!tt.ptr<f32>, #d>, %y: tensor<64x!tt.ptr<f32>, #d>, %count: !tt.ptr<i32>) {
    %zero = arith.constant 0 : i32
    %0 = tt.load %x : tensor<64x!tt.ptr<f32>, #d>
    %1 = tt.atomic_rmw add, relaxed, gpu, %count, %zero : (!tt.ptr<i32>, i32) -> i32
    tt.store %y, %0 : tensor<64x!tt.ptr<f32>, #d>
    tt.return
  }
  tt.func public @volatile(%x: tensor<64x!tt.ptr<f32>, #d>, %y: tensor<64x!tt.ptr<f32>, #d>, %z: tensor<64x!tt.ptr<f32>, #d>) {
    %0 = tt.load %x {isVolatile = true} : tensor<64x!tt.ptr<f32>, #d>
    tt.store %y, %0 : tensor<64x!tt.ptr<f32>, #d>
    tt.store %z, %0 : tensor<64x!tt.ptr<f32>, #d>
    tt.return
  }
}
