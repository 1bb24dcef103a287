// RUN: mltriton opt %s -p "lower-cross-warp,canonicalize,cse" | filecheck %s
// A combination across warps is an exchange through a buffer with a part for each warp.
#block = #ttg.blocked<{sizePerWarp = [16], warpsPerCTA = [1], order = [0]}>
module attributes {mltriton.level = "warp", mltriton.warp_level = true, "ttg.num-warps" = 4 : i32, ttg.target = "generic", "ttg.threads-per-warp" = 16 : i32} {

// CHECK-LABEL: @every_warp_receives
// CHECK-DAG: %[[ALL:.*]] = ttg.local_alloc : () -> !ttg.memdesc<4x16xf32
// CHECK-DAG: %[[ID:.*]] = arith.index_cast
// CHECK: %[[OWN:.*]] = ttg.memdesc_subview %[[ALL]][%[[ID]], %{{.*}}] : {{.*}} -> !ttg.memdesc<16xf32
// CHECK-NEXT: ttg.local_store %x, %[[OWN]]
// CHECK-NEXT: gpu.barrier
// CHECK-NEXT: %[[PARTS:.*]] = ttg.local_load %[[ALL]] : {{.*}} -> tensor<4x16xf32
// CHECK-NEXT: "tt.reduce"(%[[PARTS]]) <{axis = 0 : i32}>
// CHECK-NOT: gpu.barrier
// CHECK: tt.return
tt.func @every_warp_receives(%x: tensor<16xf32, #block>) -> tensor<16xf32, #block> {
  %0 = "ttg.cross_warp_reduce"(%x) ({
  ^bb0(%a: f32, %b: f32):
    %1 = arith.addf %a, %b : f32
    tt.reduce.return %1 : f32
  }) : (tensor<16xf32, #block>) -> tensor<16xf32, #block>
  tt.return %0 : tensor<16xf32, #block>
}

// The other warps get poison.
// CHECK-LABEL: @warp_2_receives
// CHECK: gpu.barrier
// CHECK: %[[IS:.*]] = arith.cmpi eq, %{{.*}}, %c2
// CHECK: scf.if %[[IS]] -> (i32) {
// CHECK: ttg.local_load
// CHECK: } else {
// CHECK-NEXT: scf.yield %c-1
tt.func @warp_2_receives(%x: i32) -> i32 {
  %0 = "ttg.cross_warp_reduce"(%x) <{dst_warps = array<i32: 2>}> ({
  ^bb0(%a: i32, %b: i32):
    %1 = arith.addi %a, %b : i32
    tt.reduce.return %1 : i32
  }) : (i32) -> i32
  tt.return %0 : i32
}

// In a loop a barrier protects the buffer from warps that are one iteration ahead.
// CHECK-LABEL: @loop
// CHECK: scf.for
// CHECK-NEXT: gpu.barrier
// CHECK: ttg.local_store
// CHECK-NEXT: gpu.barrier
// CHECK: ttg.local_load
tt.func @loop(%x: i32, %n: i32) -> i32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%y = %x) -> (i32) : i32 {
    %0 = "ttg.cross_warp_reduce"(%y) ({
    ^bb0(%a: i32, %b: i32):
      %1 = arith.addi %a, %b : i32
      tt.reduce.return %1 : i32
    }) : (i32) -> i32
    scf.yield %0 : i32
  }
  tt.return %r : i32
}

// Two in one loop protect each other.
// CHECK-LABEL: @two_in_a_loop
// CHECK: scf.for
// CHECK-NOT: gpu.barrier
// CHECK: ttg.local_store
// CHECK-NEXT: gpu.barrier
// CHECK-NOT: gpu.barrier
// CHECK: ttg.local_store
// CHECK-NEXT: gpu.barrier
// CHECK-NOT: gpu.barrier
// CHECK: tt.return
tt.func @two_in_a_loop(%x: i32, %n: i32) -> i32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%y = %x) -> (i32) : i32 {
    %0 = "ttg.cross_warp_reduce"(%y) ({
    ^bb0(%a: i32, %b: i32):
      %1 = arith.addi %a, %b : i32
      tt.reduce.return %1 : i32
    }) : (i32) -> i32
    %2 = "ttg.cross_warp_reduce"(%0) ({
    ^bb0(%a: i32, %b: i32):
      %1 = arith.maxsi %a, %b : i32
      tt.reduce.return %1 : i32
    }) : (i32) -> i32
    scf.yield %2 : i32
  }
  tt.return %r : i32
}

// Warp 0 scans for all; each then loads its own part.
// CHECK-LABEL: @scan
// CHECK: ttg.local_store
// CHECK-NEXT: gpu.barrier
// CHECK: scf.if
// CHECK: "tt.scan"
// CHECK: ttg.local_store
// CHECK: gpu.barrier
// CHECK-NEXT: ttg.local_load
tt.func @scan(%x: i32) -> i32 {
  %0 = "ttg.cross_warp_scan"(%x) ({
  ^bb0(%a: i32, %b: i32):
    %1 = arith.addi %a, %b : i32
    tt.scan.return %1 : i32
  }) : (i32) -> i32
  tt.return %0 : i32
}
}
