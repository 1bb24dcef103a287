// RUN: mltriton opt %s -p assign-layouts | filecheck %s --check-prefix TTG
// RUN: mltriton opt %s -p "assign-layouts,cse,distribute-to-warps,canonicalize,cse" | filecheck %s --check-prefix WARP
// RUN: mltriton opt %s -p "assign-layouts,cse,distribute-to-warps,canonicalize,cse,match-target-size,cse" \
// RUN: | filecheck %s --check-prefix INTR
//
// The ML-Triton paper's GEMM: C += A B with blocks of 256x256x32 and 32 warps (Listings 2, 3 and 4).

// Listing 2: C is cut into 8 x 4 parts of 32x64, A and B are its dot operands, everything else follows.
// TTG: #blocked = #ttg.blocked<{sizePerWarp = [32, 64], warpsPerCTA = [8, 4], order = [1, 0]}>
// TTG: #dot0 = #ttg.dot_op<{opIdx = 0, parent = #blocked}>
// TTG: #dot1 = #ttg.dot_op<{opIdx = 1, parent = #blocked}>
// TTG-NOT: ttg.convert_layout
// TTG: arith.constant dense<0.000000e+00> : tensor<256x256xf32, #blocked>
// TTG: tt.make_tensor_ptr %a, {{.*}} : <tensor<256x32xf16, #dot0>>
// TTG: tt.make_tensor_ptr %b, {{.*}} : <tensor<32x256xf16, #dot1>>
// TTG: scf.for
// TTG-NEXT: tt.load {{.*}} : !tt.ptr<tensor<256x32xf16, #dot0>>
// TTG-NEXT: tt.load {{.*}} : !tt.ptr<tensor<32x256xf16, #dot1>>
// TTG-NEXT: tt.dot {{.*}} : tensor<256x32xf16, #dot0> * tensor<32x256xf16, #dot1> -> tensor<256x256xf32, #blocked>
// TTG: tt.make_tensor_ptr %c, {{.*}} : <tensor<256x256xf32, #blocked>>
// TTG-NEXT: tt.store {{.*}} : !tt.ptr<tensor<256x256xf32, #blocked>>

// Listing 3: offsets depend on the warp's row (id / 4) and column (id % 4); A is 32x32, B 32x64 and C 32x64 a warp.
// WARP: arith.constant dense<0.000000e+00> : tensor<32x64xf32, #blocked>
// WARP: %[[ID:.*]] = gpu.subgroup_id : index
// WARP: %[[W:.*]] = arith.index_cast %[[ID]]
// WARP: %[[ROW:.*]] = arith.divui %[[W]], %c4_i32
// WARP: %[[DY:.*]] = arith.muli %[[ROW]], %c32
// WARP: %[[COLUMN:.*]] = arith.remui %[[W]], %c4_i32
// WARP: %[[DX:.*]] = arith.muli %[[COLUMN]], %c64_i32
// WARP: %[[Y:.*]] = arith.addi %y, %[[DY]]
// WARP: tt.make_tensor_ptr %a, {{.*}}, [%[[Y]], %c0] {{.*}} : <tensor<32x32xf16, #dot0>>
// WARP: %[[X:.*]] = arith.addi %x, %[[DX]]
// WARP: tt.make_tensor_ptr %b, {{.*}}, [%c0, %[[X]]] {{.*}} : <tensor<32x64xf16, #dot1>>
// WARP: tt.dot {{.*}} : tensor<32x32xf16, #dot0> * tensor<32x64xf16, #dot1> -> tensor<32x64xf32, #blocked>
// WARP: tt.make_tensor_ptr %c, {{.*}}, [%[[Y]], %[[X]]] {{.*}} : <tensor<32x64xf32, #blocked>>
// WARP-NOT: ttg.local_alloc

// Listing 4: one load of A, two of B, 32 dots of 8x16x16 on extracted pieces, 16 stores of 8x16.
// INTR: tt.make_tensor_ptr %a, {{.*}} : <tensor<32x32xf16>>
// INTR: tt.make_tensor_ptr %b, {{.*}} : <tensor<32x32xf16>>
// INTR: tt.make_tensor_ptr %b, {{.*}} : <tensor<32x32xf16>>
// INTR: scf.for
// INTR-NEXT: %[[A:.*]] = tt.load {{.*}} : !tt.ptr<tensor<32x32xf16>>
// INTR-NEXT: %[[B:.*]] = tt.load {{.*}} : !tt.ptr<tensor<32x32xf16>>
// INTR-NEXT: %{{.*}} = tt.load {{.*}} : !tt.ptr<tensor<32x32xf16>>
// INTR-NEXT: ttig.extract %[[A]][0] : tensor<32x32xf16> -> tensor<8x16xf16>
// INTR-NEXT: ttig.extract %[[B]][0] : tensor<32x32xf16> -> tensor<16x16xf16>
// INTR-COUNT-32: tt.dot {{.*}} : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
// INTR-NOT: tt.dot
// INTR: scf.yield
// INTR-COUNT-16: tt.store {{.*}} : !tt.ptr<tensor<8x16xf32>>
// INTR-NOT: tt.store
module attributes {"ttg.num-warps" = 32 : i32, ttg.target = "generic"} {
tt.func public @matmul_kernel_with_block_pointers(%a: !tt.ptr<f16>, %b: !tt.ptr<f16>, %c: !tt.ptr<f32>, %y: i32, %x: i32) {
  %cst = arith.constant dense<0.000000e+00> : tensor<256x256xf32>
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %c4096 = arith.constant 4096 : i32
  %c1_i64 = arith.constant 1 : i64
  %c4096_i64 = arith.constant 4096 : i64
  %a_ptr = tt.make_tensor_ptr %a, [%c4096_i64, %c4096_i64], [%c4096_i64, %c1_i64], [%y, %c0] {order = array<i32: 1, 0>} : <tensor<256x32xf16>>
  %b_ptr = tt.make_tensor_ptr %b, [%c4096_i64, %c4096_i64], [%c4096_i64, %c1_i64], [%c0, %x] {order = array<i32: 1, 0>} : <tensor<32x256xf16>>
  %loop:3 = scf.for %k = %c0 to %c4096 step %c32 iter_args(%acc = %cst, %pa = %a_ptr, %pb = %b_ptr) -> (tensor<256x256xf32>, !tt.ptr<tensor<256x32xf16>>, !tt.ptr<tensor<32x256xf16>>) : i32 {
    %va = tt.load %pa : !tt.ptr<tensor<256x32xf16>>
    %vb = tt.load %pb : !tt.ptr<tensor<32x256xf16>>
    %d = tt.dot %va, %vb, %acc : tensor<256x32xf16> * tensor<32x256xf16> -> tensor<256x256xf32>
    %na = tt.advance %pa, [%c0, %c32] : <tensor<256x32xf16>>
    %nb = tt.advance %pb, [%c32, %c0] : <tensor<32x256xf16>>
    scf.yield %d, %na, %nb : tensor<256x256xf32>, !tt.ptr<tensor<256x32xf16>>, !tt.ptr<tensor<32x256xf16>>
  }
  %c_ptr = tt.make_tensor_ptr %c, [%c4096_i64, %c4096_i64], [%c4096_i64, %c1_i64], [%y, %x] {order = array<i32: 1, 0>} : <tensor<256x256xf32>>
  tt.store %c_ptr, %loop#0 : !tt.ptr<tensor<256x256xf32>>
  tt.return
}
}
