// RUN: mltriton opt %s -p serialize-warps,canonicalize,cse,licm,dce | filecheck %s
// Pieces between barriers are loops over the warps; what the warps agree on stands outside; a sum that lives across a
// barrier has a buffer with a part for each warp; an accumulator of a loop with barriers goes back to where it came from.

#row = #ttg.blocked<{sizePerWarp = [8], warpsPerCTA = [1], order = [0]}>

module attributes {mltriton.level = "warp", mltriton.warp_level = true, "ttg.num-warps" = 4 : i32, ttg.target = "cpu"} {
  // CHECK: module attributes
  // CHECK-NOT: warp_level
  // CHECK-SAME: "ttg.num-warps" = 1 : i32

  // CHECK-LABEL: @one_piece
  // CHECK-NOT: ttg.local_alloc
  // CHECK: tt.load %p
  // CHECK-NEXT: %[[X:.*]] = arith.trunci
  // CHECK-NEXT: scf.for %[[W:.*]] = %c0_i32 to %c4_i32
  // CHECK-NEXT: arith.addi %[[X]], %[[W]]
  // CHECK-NEXT: tt.atomic_rmw
  // CHECK-NOT: gpu.subgroup_id
  tt.func @one_piece(%p: !tt.ptr<i64>, %q: !tt.ptr<i32>) {
    %true = arith.constant true
    %index = gpu.subgroup_id : index
    %w = arith.index_cast %index : index to i32
    %wide = tt.load %p : !tt.ptr<i64>
    %x = arith.trunci %wide : i64 to i32
    %y = arith.addi %x, %w : i32
    %old = tt.atomic_rmw add, acq_rel, gpu, %q, %y, %true : (!tt.ptr<i32>, i32, i1) -> i32
    tt.return
  }

  // CHECK-LABEL: @two_pieces
  // CHECK: %[[M:.*]] = ttg.local_alloc : () -> !ttg.memdesc<8xf32
  // CHECK-NEXT: %[[KEPT:.*]] = ttg.local_alloc : () -> !ttg.memdesc<4x1xf32
  // CHECK: scf.for %[[W:.*]] = %c0 to %c4_i32
  // CHECK: tt.reduce
  // CHECK: scf.if
  // CHECK: ttg.local_store {{.*}}, %[[M]]
  // CHECK: ttg.memdesc_subview %[[KEPT]][%[[W]], %c0]
  // CHECK-NEXT: ttg.local_store
  // CHECK-NOT: gpu.barrier
  // CHECK: %[[ALL:.*]] = ttg.local_load %[[M]]
  // CHECK: scf.for %[[W:.*]] = %c0 to %c4_i32
  // CHECK: ttg.memdesc_subview %[[KEPT]][%[[W]], %c0]
  // CHECK: tt.unsplat
  // CHECK: tt.store
  tt.func @two_pieces(%p: !tt.ptr<f32>) {
    %c0 = arith.constant 0 : i32
    %c8 = arith.constant 8 : i32
    %index = gpu.subgroup_id : index
    %w = arith.index_cast %index : index to i32
    %m = ttg.local_alloc : () -> !ttg.memdesc<8xf32, #ttg.shared_memory, mutable>
    %range = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32, #row>
    %start = arith.muli %w, %c8 : i32
    %base = tt.addptr %p, %start : !tt.ptr<f32>, i32
    %bases = tt.splat %base : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>, #row>
    %ptr = tt.addptr %bases, %range : tensor<8x!tt.ptr<f32>, #row>, tensor<8xi32, #row>
    %x = tt.load %ptr : tensor<8x!tt.ptr<f32>, #row>
    %sum = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) : (tensor<8xf32, #row>) -> f32
    %first = arith.cmpi eq, %w, %c0 : i32
    scf.if %first {
      ttg.local_store %x, %m : tensor<8xf32, #row> -> !ttg.memdesc<8xf32, #ttg.shared_memory, mutable>
    }
    gpu.barrier
    %all = ttg.local_load %m : !ttg.memdesc<8xf32, #ttg.shared_memory, mutable> -> tensor<8xf32, #row>
    %sums = tt.splat %sum : f32 -> tensor<8xf32, #row>
    %y = arith.addf %all, %sums : tensor<8xf32, #row>
    tt.store %ptr, %y : tensor<8x!tt.ptr<f32>, #row>
    tt.return
  }

  // CHECK-LABEL: @accumulator
  // CHECK: %[[ACC:.*]] = ttg.local_alloc : () -> !ttg.memdesc<4x8xf32
  // CHECK: scf.for %i = %c0 to %n
  // CHECK-NOT: iter_args
  // CHECK: scf.for %[[W:.*]] = %c0 to %c4_i32
  // CHECK: %[[PART:.*]] = ttg.memdesc_subview %[[ACC]][%[[W]], %c0]
  // CHECK: %[[OLD:.*]] = ttg.local_load %[[PART]]
  // CHECK: %[[NEW:.*]] = arith.addf %[[OLD]]
  // CHECK-NEXT: ttg.local_store %[[NEW]], %[[PART]]
  tt.func @accumulator(%p: !tt.ptr<f32>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c8 = arith.constant 8 : i32
    %zero = arith.constant dense<0.0> : tensor<8xf32, #row>
    %index = gpu.subgroup_id : index
    %w = arith.index_cast %index : index to i32
    %range = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32, #row>
    %start = arith.muli %w, %c8 : i32
    %base = tt.addptr %p, %start : !tt.ptr<f32>, i32
    %bases = tt.splat %base : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>, #row>
    %ptr = tt.addptr %bases, %range : tensor<8x!tt.ptr<f32>, #row>, tensor<8xi32, #row>
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<8xf32, #row>) : i32 {
      gpu.barrier
      %x = tt.load %ptr : tensor<8x!tt.ptr<f32>, #row>
      %next = arith.addf %acc, %x : tensor<8xf32, #row>
      gpu.barrier
      scf.yield %next : tensor<8xf32, #row>
    }
    tt.store %ptr, %sum : tensor<8x!tt.ptr<f32>, #row>
    tt.return
  }

  // CHECK-LABEL: @filled
  // CHECK: %[[M:.*]] = ttg.local_alloc : () -> !ttg.memdesc<8xf32
  // CHECK: ttg.local_store %{{.*}}, %[[M]]
  // CHECK: ttg.local_load %[[M]]
  tt.func @filled(%p: !tt.ptr<f32>) {
    %range = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32, #row>
    %bases = tt.splat %p : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>, #row>
    %ptr = tt.addptr %bases, %range : tensor<8x!tt.ptr<f32>, #row>, tensor<8xi32, #row>
    %x = tt.load %ptr : tensor<8x!tt.ptr<f32>, #row>
    %m = ttg.local_alloc %x : (tensor<8xf32, #row>) -> !ttg.memdesc<8xf32, #ttg.shared_memory, mutable>
    gpu.barrier
    %y = ttg.local_load %m : !ttg.memdesc<8xf32, #ttg.shared_memory, mutable> -> tensor<8xf32, #row>
    tt.store %ptr, %y : tensor<8x!tt.ptr<f32>, #row>
    tt.return
  }
}
