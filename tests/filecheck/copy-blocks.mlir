// RUN: mltriton opt %s -p "assign-layouts,cse,assign-lanes,dce,pipeline-loads{stages=3},copy-blocks,dce,canonicalize,cse,start-dots" | filecheck %s
// A loop's operands come by the engine two iterations ahead, and a barrier for each buffer says when; the fourth buffer
// is still read by the product that goes on into the next iteration. The sum goes to memory by the engine as well.

// CHECK-DAG: #[[SHARED:.*]] = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
// CHECK-LABEL: @product
// CHECK: %[[A:.*]] = ttg.local_alloc : () -> !ttg.memdesc<4x64x64xf16, #[[SHARED]], #ttg.shared_memory, mutable>
// CHECK: %[[B:.*]] = ttg.local_alloc : () -> !ttg.memdesc<4x64x64xf16, #[[SHARED]], #ttg.shared_memory, mutable>
// CHECK: %[[BARRIERS:.*]] = ttg.local_alloc : () -> !ttg.memdesc<4x1xi64, #ttg.shared_memory, mutable>
// CHECK-COUNT-4: ttng.init_barrier
// CHECK-NEXT: ttng.fence_async_shared
// CHECK-NEXT: gpu.barrier
// CHECK: %[[FIRST:.*]] = arith.cmpi slt
// CHECK: ttng.barrier_expect %{{.*}}, 16384, %[[FIRST]]
// CHECK: ttng.async_tma_copy_global_to_local %{{.*}}[%i, %{{.*}}] %{{.*}}, %{{.*}}, %[[FIRST]]
// CHECK: ttng.async_tma_copy_global_to_local
// CHECK: ttng.barrier_expect
// CHECK: scf.for {{.*}} iter_args(%[[SUM:.*]] = %{{.*}}, %[[SLOT:.*]] = %c0, %[[PARITY:.*]] = %c0)
// CHECK: %[[NOW:.*]] = ttg.memdesc_subview %[[BARRIERS]][%[[SLOT]], %c0]
// CHECK-NEXT: ttng.wait_barrier %[[NOW]], %[[PARITY]]
// CHECK-NEXT: gpu.barrier
// CHECK-NOT: ttg.async_
// CHECK: ttng.barrier_expect
// CHECK-COUNT-2: ttng.async_tma_copy_global_to_local
// CHECK: arith.xori %[[PARITY]]
// CHECK: %[[X:.*]] = ttg.memdesc_subview %[[A]][%[[SLOT]], %c0, %c0]
// CHECK: %[[Y:.*]] = ttg.memdesc_subview %[[B]][%[[SLOT]], %c0, %c0]
// CHECK: %[[TURNED:.*]] = ttg.memdesc_trans %[[Y]]
// CHECK: ttng.warp_group_dot %[[X]], %[[TURNED]], %[[SUM]] {isAsync = true}
// CHECK: ttng.warp_group_dot_wait %{{.*}} {pendings = 1 : i32}
// CHECK: ttng.warp_group_dot_wait
// CHECK-NEXT: gpu.barrier
// CHECK-COUNT-4: ttng.inval_barrier
// CHECK: %[[OUT:.*]] = ttg.local_alloc
// CHECK: ttg.local_store %{{.*}}, %[[OUT]]
// CHECK-NEXT: ttng.fence_async_shared
// CHECK-NEXT: gpu.barrier
// CHECK-NEXT: ttng.async_tma_copy_local_to_global %{{.*}}[%i, %j] %[[OUT]]
// CHECK-NEXT: ttng.async_tma_store_wait
module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90"} {
tt.func public @product(%a: !tt.ptr<f16>, %b: !tt.ptr<f16>, %c: !tt.ptr<f32>, %n: i64, %i: i32, %j: i32, %steps: i32) {
  %cst = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
  %one = arith.constant 1 : i64
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %da = ttng.tensor_map %a, [%n, %n], [%n, %one] : <f16>, <tensor<64x64xf16>>
  %db = ttng.tensor_map %b, [%n, %n], [%n, %one] : <f16>, <tensor<64x64xf16>>
  %dc = ttng.tensor_map %c, [%n, %n], [%n, %one] : <f32>, <tensor<64x64xf32>>
  %sum = scf.for %k = %c0 to %steps step %c64 iter_args(%acc = %cst) -> (tensor<64x64xf32>) : i32 {
    %x = tt.descriptor_load %da[%i, %k] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>
    %y = tt.descriptor_load %db[%j, %k] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>
    %t = tt.trans %y {order = array<i32: 1, 0>} : tensor<64x64xf16> -> tensor<64x64xf16>
    %z = tt.dot %x, %t, %acc : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %z : tensor<64x64xf32>
  }
  tt.descriptor_store %dc[%i, %j], %sum : !tt.tensordesc<tensor<64x64xf32>>, tensor<64x64xf32>
  tt.return
}
// A block that memory is combined with goes the way of one that is stored.
// CHECK-LABEL: @added
// CHECK: %[[HERE:.*]] = ttg.local_alloc
// CHECK: ttg.local_store %x, %[[HERE]]
// CHECK-NEXT: ttng.fence_async_shared
// CHECK-NEXT: gpu.barrier
// CHECK-NEXT: ttng.async_tma_reduce add, %{{.*}}[%i, %i] %[[HERE]]
// CHECK-NEXT: ttng.async_tma_store_wait
tt.func public @added(%d: !tt.ptr<f32>, %n: i64, %i: i32, %by: f32) {
  %x = tt.splat %by : f32 -> tensor<64x64xf32>
  %one = arith.constant 1 : i64
  %dd = ttng.tensor_map %d, [%n, %n], [%n, %one] : <f32>, <tensor<64x64xf32>>
  tt.descriptor_reduce add, %dd[%i, %i], %x : !tt.tensordesc<tensor<64x64xf32>>, tensor<64x64xf32>
  tt.return
}
// Iterations write blocks of their own; the block behind the loop may be one of these: the engine must have written it.
// Lanes have loaded from there before.
// CHECK-LABEL: @repeated
// CHECK: scf.for
// CHECK-NEXT: arith.muli
// CHECK-NEXT: ttg.local_alloc
// CHECK-NEXT: ttg.local_store
// CHECK-NEXT: ttng.fence_async_shared {everywhere = true}
// CHECK-NEXT: gpu.barrier
// CHECK-NEXT: ttng.async_tma_copy_local_to_global
// CHECK-NEXT: ttng.async_tma_store_wait
// CHECK-NEXT: }
// CHECK-NEXT: ttng.async_tma_store_wait {written = true}
// CHECK-NEXT: ttg.local_alloc
// CHECK: ttng.async_tma_copy_local_to_global
tt.func public @repeated(%d: !tt.ptr<f32>, %n: i64, %i: i32, %steps: i32) {
  %by = tt.load %d : !tt.ptr<f32>
  %x = tt.splat %by : f32 -> tensor<64x64xf32>
  %one = arith.constant 1 : i64
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %dd = ttng.tensor_map %d, [%n, %n], [%n, %one] : <f32>, <tensor<64x64xf32>>
  scf.for %k = %c0 to %steps step %c1 : i32 {
    %row = arith.muli %k, %c64 : i32
    tt.descriptor_store %dd[%row, %i], %x : !tt.tensordesc<tensor<64x64xf32>>, tensor<64x64xf32>
  }
  tt.descriptor_store %dd[%i, %i], %x : !tt.tensordesc<tensor<64x64xf32>>, tensor<64x64xf32>
  tt.return
}
// Blocks of other sizes of the same tensor: those beside each other need no order; that of 32 columns before the first
// 64 is apart from them, that of 64 columns is not, and must wait until the engine has written.
// CHECK-LABEL: @beside
// CHECK: ttng.async_tma_copy_local_to_global
// CHECK-NEXT: ttng.async_tma_store_wait
// CHECK-NEXT: ttg.local_alloc
// CHECK: ttng.async_tma_copy_local_to_global
// CHECK-NEXT: ttng.async_tma_store_wait
// CHECK-NEXT: ttg.local_alloc
// CHECK: ttng.async_tma_copy_local_to_global
// CHECK-NEXT: ttng.async_tma_store_wait
// CHECK-NEXT: ttng.async_tma_store_wait {written = true}
// CHECK-NEXT: ttg.local_alloc
// CHECK: ttng.async_tma_copy_local_to_global
tt.func public @beside(%d: !tt.ptr<f32>, %n: i64, %i: i32, %by: f32) {
  %x = tt.splat %by : f32 -> tensor<64x64xf32>
  %y = tt.splat %by : f32 -> tensor<64x32xf32>
  %one = arith.constant 1 : i64
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %wide = ttng.tensor_map %d, [%n, %n], [%n, %one] : <f32>, <tensor<64x64xf32>>
  %narrow = ttng.tensor_map %d, [%n, %n], [%n, %one] : <f32>, <tensor<64x32xf32>>
  %behind = arith.addi %i, %c64 : i32
  %before = arith.subi %i, %c32 : i32
  tt.descriptor_store %wide[%i, %i], %x : !tt.tensordesc<tensor<64x64xf32>>, tensor<64x64xf32>
  tt.descriptor_store %narrow[%i, %behind], %y : !tt.tensordesc<tensor<64x32xf32>>, tensor<64x32xf32>
  tt.descriptor_store %narrow[%i, %before], %y : !tt.tensordesc<tensor<64x32xf32>>, tensor<64x32xf32>
  tt.descriptor_store %wide[%i, %before], %x : !tt.tensordesc<tensor<64x64xf32>>, tensor<64x64xf32>
  tt.return
}
// A transpose is written to shared memory as what it is the transpose of.
// CHECK-LABEL: @transposed
// CHECK: %[[HERE:.*]] = ttg.local_alloc : () -> !ttg.memdesc<32x64xf16, #[[SHARED]], #ttg.shared_memory, mutable>
// CHECK-NEXT: %[[TURNED:.*]] = ttg.memdesc_trans %[[HERE]]
// CHECK-NEXT: ttg.local_store %x, %[[TURNED]]
// CHECK-NOT: tt.trans
// CHECK: ttng.async_tma_copy_local_to_global %{{.*}}[%i, %i] %[[HERE]]
tt.func public @transposed(%d: !tt.ptr<f16>, %n: i64, %i: i32, %by: f16) {
  %x = tt.splat %by : f16 -> tensor<64x32xf16>
  %one = arith.constant 1 : i64
  %dd = ttng.tensor_map %d, [%n, %n], [%n, %one] : <f16>, <tensor<32x64xf16>>
  %t = tt.trans %x {order = array<i32: 1, 0>} : tensor<64x32xf16> -> tensor<32x64xf16>
  tt.descriptor_store %dd[%i, %i], %t : !tt.tensordesc<tensor<32x64xf16>>, tensor<32x64xf16>
  tt.return
}
}
