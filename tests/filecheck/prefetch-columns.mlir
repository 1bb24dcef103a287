// RUN: mltriton opt %s -p "normalize-block-pointers,assign-layouts,prefetch{distance=2},canonicalize,cse" | filecheck %s
// What lies next to each other in memory is what has stride 1, whatever the order says: 8 columns of 64 bytes a warp.

// CHECK: #block = #ttig.subgroup_2d_block<{warpsPerCTA = [1, 32], instrShape = [32, 8], numBlocks = 1, order = [0, 1], {{.*}} sizePerWarp = [32, 8]}>
// CHECK: scf.for
// CHECK: ttig.prefetch {{.*}} : !tt.ptr<tensor<32x256xf16, #block>>
// CHECK: tt.dot
module attributes {"ttg.num-warps" = 32 : i32, ttg.target = "generic"} {
tt.func public @turned(%b: !tt.ptr<f16>, %c: !tt.ptr<f32>, %x: i32, %k_end: i32, %rows: i32, %columns: i32) {
  %n = arith.extsi %rows : i32 to i64
  %k = arith.extsi %columns : i32 to i64
  %cst = arith.constant dense<0.000000e+00> : tensor<256x256xf32>
  %a = arith.constant dense<1.000000e+00> : tensor<256x32xf16>
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %c1 = arith.constant 1 : i64
  %b_ptr = tt.make_tensor_ptr %b, [%k, %n], [%c1, %k], [%c0, %x] {order = array<i32: 1, 0>} : <tensor<32x256xf16>>
  %loop:2 = scf.for %i = %c0 to %k_end step %c32 iter_args(%acc = %cst, %pb = %b_ptr) -> (tensor<256x256xf32>, !tt.ptr<tensor<32x256xf16>>) : i32 {
    %vb = tt.load %pb : !tt.ptr<tensor<32x256xf16>>
    %d = tt.dot %a, %vb, %acc : tensor<256x32xf16> * tensor<32x256xf16> -> tensor<256x256xf32>
    %nb = tt.advance %pb, [%c32, %c0] : <tensor<32x256xf16>>
    scf.yield %d, %nb : tensor<256x256xf32>, !tt.ptr<tensor<32x256xf16>>
  }
  %c_ptr = tt.make_tensor_ptr %c, [%n, %n], [%n, %c1], [%x, %x] {order = array<i32: 1, 0>} : <tensor<256x256xf32>>
  tt.store %c_ptr, %loop#0 : !tt.ptr<tensor<256x256xf32>>
  tt.return
}
}
