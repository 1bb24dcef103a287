// RUN: mltriton opt %s -p "normalize-block-pointers,assign-layouts,prefetch{distance=2},canonicalize,cse" | filecheck %s
// A and B of a matrix product are prefetched two steps ahead, cut between all 32 warps: 8 rows of 64 bytes for each.

// CHECK: #block = #ttig.subgroup_2d_block<{warpsPerCTA = [32, 1], instrShape = [8, 16], numBlocks = 2, {{.*}} sizePerWarp = [8, 32]}>
// CHECK: #block1 = #ttig.subgroup_2d_block<{warpsPerCTA = [4, 8], instrShape = [8, 16], numBlocks = 2, {{.*}} sizePerWarp = [8, 32]}>
// CHECK: %[[A:.*]] = tt.make_tensor_ptr %a, {{.*}}, [%y, %c0] {{.*}} : <tensor<256x32xf16, #block>>
// CHECK: ttig.prefetch %[[A]] : !tt.ptr<tensor<256x32xf16, #block>>
// CHECK: %[[A1:.*]] = tt.make_tensor_ptr %a, {{.*}}, [%y, %c32]
// CHECK: ttig.prefetch %[[A1]]
// CHECK: scf.for {{.*}}, %[[K:.*]] = %c0)
// CHECK: tt.load
// CHECK: %[[LATER:.*]] = arith.addi %[[K]], %c64_i32
// CHECK: %[[A2:.*]] = tt.make_tensor_ptr %a, {{.*}}, [%y, %[[LATER]]] {{.*}} : <tensor<256x32xf16, #block>>
// CHECK: ttig.prefetch %[[A2]]
// CHECK: ttig.prefetch {{.*}} : !tt.ptr<tensor<32x256xf16, #block1>>
// CHECK: tt.dot
// CHECK-NOT: ttig.prefetch
module attributes {"ttg.num-warps" = 32 : i32, ttg.target = "generic"} {
tt.func public @product(%a: !tt.ptr<f16>, %b: !tt.ptr<f16>, %c: !tt.ptr<f32>, %y: i32, %x: i32, %k_end: i32, %rows: i32, %columns: i32) {
  %n = arith.extsi %rows : i32 to i64
  %k = arith.extsi %columns : i32 to i64
  %cst = arith.constant dense<0.000000e+00> : tensor<256x256xf32>
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %c1 = arith.constant 1 : i64
  %a_ptr = tt.make_tensor_ptr %a, [%n, %k], [%k, %c1], [%y, %c0] {order = array<i32: 1, 0>} : <tensor<256x32xf16>>
  %desc = tt.make_tensor_descriptor %b, [%k_end, %k_end], [%n, %c1] : <f16>, <tensor<32x256xf16>>
  %loop:2 = scf.for %i = %c0 to %k_end step %c32 iter_args(%acc = %cst, %pa = %a_ptr) -> (tensor<256x256xf32>, !tt.ptr<tensor<256x32xf16>>) : i32 {
    %va = tt.load %pa : !tt.ptr<tensor<256x32xf16>>
    %vb = tt.descriptor_load %desc[%i, %x] : !tt.tensordesc<tensor<32x256xf16>> -> tensor<32x256xf16>
    %d = tt.dot %va, %vb, %acc : tensor<256x32xf16> * tensor<32x256xf16> -> tensor<256x256xf32>
    %na = tt.advance %pa, [%c0, %c32] : <tensor<256x32xf16>>
    scf.yield %d, %na : tensor<256x256xf32>, !tt.ptr<tensor<256x32xf16>>
  }
  %c_ptr = tt.make_tensor_ptr %c, [%n, %n], [%n, %c1], [%y, %x] {order = array<i32: 1, 0>} : <tensor<256x256xf32>>
  tt.store %c_ptr, %loop#0 : !tt.ptr<tensor<256x256xf32>>
  tt.return
}

// Rows that may have more than 2**31 elements: what the body computes of constants is computed in front of the loop too.
// CHECK-LABEL: @long
// CHECK: %[[B:.*]] = tt.addptr %a
// CHECK: ttig.prefetch
// CHECK: ttig.prefetch
// CHECK: scf.for
tt.func public @long(%a: !tt.ptr<f16>, %b: !tt.ptr<f16>, %c: !tt.ptr<f32>, %y: i32, %x: i32, %k_end: i32, %rows: i32, %k: i64) {
  %n = arith.extsi %rows : i32 to i64
  %cst = arith.constant dense<0.000000e+00> : tensor<256x256xf32>
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %c1 = arith.constant 1 : i64
  %a_ptr = tt.make_tensor_ptr %a, [%n, %k], [%k, %c1], [%y, %c0] {order = array<i32: 1, 0>} : <tensor<256x32xf16>>
  %desc = tt.make_tensor_descriptor %b, [%k_end, %k_end], [%n, %c1] : <f16>, <tensor<32x256xf16>>
  %loop:2 = scf.for %i = %c0 to %k_end step %c32 iter_args(%acc = %cst, %pa = %a_ptr) -> (tensor<256x256xf32>, !tt.ptr<tensor<256x32xf16>>) : i32 {
    %va = tt.load %pa : !tt.ptr<tensor<256x32xf16>>
    %vb = tt.descriptor_load %desc[%i, %x] : !tt.tensordesc<tensor<32x256xf16>> -> tensor<32x256xf16>
    %d = tt.dot %va, %vb, %acc : tensor<256x32xf16> * tensor<32x256xf16> -> tensor<256x256xf32>
    %na = tt.advance %pa, [%c0, %c32] : <tensor<256x32xf16>>
    scf.yield %d, %na : tensor<256x256xf32>, !tt.ptr<tensor<256x32xf16>>
  }
  %c_ptr = tt.make_tensor_ptr %c, [%n, %n], [%n, %c1], [%y, %x] {order = array<i32: 1, 0>} : <tensor<256x256xf32>>
  tt.store %c_ptr, %loop#0 : !tt.ptr<tensor<256x256xf32>>
  tt.return
}
}
