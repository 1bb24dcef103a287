// RUN: mltriton opt %s -p assign-layouts | filecheck %s --check-prefix TTG
// RUN: mltriton opt %s -p "assign-layouts,cse,distribute-to-warps,canonicalize,cse" | filecheck %s --check-prefix WARP
// RUN: mltriton opt %s -p "assign-layouts,cse,distribute-to-warps,canonicalize,cse,match-target-size,cse" \
// RUN: | filecheck %s --check-prefix INTR
// RUN: mltriton compile %S/attention.py:attention --target generic --num-warps 8 --emit ttg \
// RUN: -s "*fp16:16, *fp16:16, *fp16:16, *fp16:16, i32, i32, 128, 64, 64, 'horizontal'" \
// RUN: | filecheck %s --check-prefixes TTG,KERNEL
// RUN: mltriton compile %S/attention.py:attention --target generic --num-warps 8 --emit ttg \
// RUN: -s "*fp16:16, *fp16:16, *fp16:16, *fp16:16, i32, i32, 128, 64, 64, None" \
// RUN: | filecheck %s --check-prefixes TTG,KERNEL
// RUN: mltriton compile %S/attention.py:attention --target generic --num-warps 8 --emit tt \
// RUN: -s "*fp16:16, *fp16:16, *fp16:16, *fp16:16, i32, i32, 128, 64, 64, 'horizontal'" \
// RUN: | filecheck %s --check-prefix HINT
//
// The ML-Triton paper's FlashAttention-2: O of 128x64 and 8 warps (section 2.5, Table 5). The same layouts come from
// the text below, from a kernel with the hint of section 3.1, and from the kernel without it.

// Table 5: O is cut along rows; V is its right operand, QK and P its left one; K and Q are operands of QK; m and l are
// slices of QK.
// TTG-DAG: #blocked = #ttg.blocked<{sizePerWarp = [16, 64], warpsPerCTA = [8, 1], order = [1, 0]}>
// TTG-DAG: #dot0 = #ttg.dot_op<{opIdx = 0, parent = #blocked}>
// TTG-DAG: #[[V:.*]] = #ttg.dot_op<{opIdx = 1, parent = #blocked}>
// TTG-DAG: #[[Q:.*]] = #ttg.dot_op<{opIdx = 0, parent = #dot0}>
// TTG-DAG: #[[K:.*]] = #ttg.dot_op<{opIdx = 1, parent = #dot0}>
// TTG-DAG: #[[M:.*]] = #ttg.slice<{dim = 1, parent = #dot0}>
// TTG: %q = tt.load {{.*}} : !tt.ptr<tensor<128x64xf16, #[[Q]]>>
// TTG: scf.for
// TTG: %k = tt.load {{.*}} : !tt.ptr<tensor<64x64xf16, #[[K]]>>
// TTG: %qk = tt.dot {{.*}} -> tensor<128x64xf32, #dot0>
// TTG: "tt.reduce"
// TTG: }) : (tensor<128x64xf32, #dot0>) -> tensor<128xf32, #[[M]]>
// TTG: %m_new = arith.maxnumf {{.*}} : tensor<128xf32, #[[M]]>
// TTG: %p = math.exp2 {{.*}} : tensor<128x64xf32, #dot0>
// TTG: "tt.reduce"
// TTG: }) : (tensor<128x64xf32, #dot0>) -> tensor<128xf32, #[[M]]>
// TTG: %v = tt.load {{.*}} : !tt.ptr<tensor<64x64xf16, #[[V]]>>
// TTG: %o_new = tt.dot {{.*}} : tensor<128x64xf16, #dot0> * tensor<64x64xf16, #[[V]]> -> tensor<128x64xf32, #blocked>

// m and l are carried as slices of QK, and the hint has become O's encoding.
// KERNEL-NOT: tiling
// KERNEL: scf.yield {{.*}} : tensor<128xf32, #[[M]]>, tensor<128x64xf32, #blocked>, tensor<128xf32, #[[M]]>

// HINT: %qk = tt.dot %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : tensor<128x64xf16>
// HINT: %o_new = tt.dot {{.*}} tiling = horizontal : tensor<128x64xf16> * tensor<64x64xf16> -> tensor<128x64xf32>
// HINT-NOT: tiling

// Every warp does 16 rows; nothing crosses warps.
// WARP: tt.load {{.*}} : !tt.ptr<tensor<16x64xf16, {{.*}}>>
// WARP: tt.load {{.*}} : !tt.ptr<tensor<64x64xf16, {{.*}}>>
// WARP: tt.dot {{.*}} -> tensor<16x64xf32, #dot0>
// WARP: }) : (tensor<16x64xf32, #dot0>) -> tensor<16xf32, {{.*}}>
// WARP: tt.dot {{.*}} -> tensor<16x64xf32, #blocked>
// WARP-NOT: ttg.local_alloc
// WARP-NOT: gpu.barrier

// Both dots of 16x64x64 are 2 x 4 x 4 dots of 8x16x16.
// INTR-COUNT-64: tt.dot {{.*}} : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
// INTR-NOT: tt.dot
module attributes {"ttg.num-warps" = 8 : i32, ttg.target = "generic"} {
tt.func public @attention(%Q: !tt.ptr<f16>, %K: !tt.ptr<f16>, %V: !tt.ptr<f16>, %O: !tt.ptr<f16>, %n: i32, %row: i32) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %one = arith.constant 1 : i64
  %d = arith.constant 64 : i64
  %size = arith.extsi %n : i32 to i64
  %zero = arith.constant dense<0.000000e+00> : tensor<128x64xf32>
  %low = arith.constant dense<0xFF800000> : tensor<128xf32>
  %none = arith.constant dense<0.000000e+00> : tensor<128xf32>
  %qp = tt.make_tensor_ptr %Q, [%size, %d], [%d, %one], [%row, %c0] {order = array<i32: 1, 0>} : <tensor<128x64xf16>>
  %kp = tt.make_tensor_ptr %K, [%d, %size], [%one, %d], [%c0, %c0] {order = array<i32: 0, 1>} : <tensor<64x64xf16>>
  %vp = tt.make_tensor_ptr %V, [%size, %d], [%d, %one], [%c0, %c0] {order = array<i32: 1, 0>} : <tensor<64x64xf16>>
  %op = tt.make_tensor_ptr %O, [%size, %d], [%d, %one], [%row, %c0] {order = array<i32: 1, 0>} : <tensor<128x64xf16>>
  %q = tt.load %qp : !tt.ptr<tensor<128x64xf16>>
  %r:5 = scf.for %j = %c0 to %n step %c64 iter_args(%o = %zero, %l = %none, %m = %low, %kj = %kp, %vj = %vp) -> (tensor<128x64xf32>, tensor<128xf32>, tensor<128xf32>, !tt.ptr<tensor<64x64xf16>>, !tt.ptr<tensor<64x64xf16>>) : i32 {
    %k = tt.load %kj : !tt.ptr<tensor<64x64xf16>>
    %qk = tt.dot %q, %k, %zero : tensor<128x64xf16> * tensor<64x64xf16> -> tensor<128x64xf32>
    %max = "tt.reduce"(%qk) ({
    ^bb0(%x: f32, %y: f32):
      %z = arith.maxnumf %x, %y : f32
      tt.reduce.return %z : f32
    }) {axis = 1 : i32} : (tensor<128x64xf32>) -> tensor<128xf32>
    %m_new = arith.maxnumf %m, %max : tensor<128xf32>
    %m_column = tt.expand_dims %m_new {axis = 1 : i32} : tensor<128xf32> -> tensor<128x1xf32>
    %m_block = tt.broadcast %m_column : tensor<128x1xf32> -> tensor<128x64xf32>
    %shifted = arith.subf %qk, %m_block : tensor<128x64xf32>
    %p = math.exp2 %shifted : tensor<128x64xf32>
    %sum = "tt.reduce"(%p) ({
    ^bb0(%x: f32, %y: f32):
      %z = arith.addf %x, %y : f32
      tt.reduce.return %z : f32
    }) {axis = 1 : i32} : (tensor<128x64xf32>) -> tensor<128xf32>
    %drop = arith.subf %m, %m_new : tensor<128xf32>
    %alpha = math.exp2 %drop : tensor<128xf32>
    %l_scaled = arith.mulf %l, %alpha : tensor<128xf32>
    %l_new = arith.addf %l_scaled, %sum : tensor<128xf32>
    %alpha_column = tt.expand_dims %alpha {axis = 1 : i32} : tensor<128xf32> -> tensor<128x1xf32>
    %alpha_block = tt.broadcast %alpha_column : tensor<128x1xf32> -> tensor<128x64xf32>
    %o_scaled = arith.mulf %o, %alpha_block : tensor<128x64xf32>
    %p16 = arith.truncf %p : tensor<128x64xf32> to tensor<128x64xf16>
    %v = tt.load %vj : !tt.ptr<tensor<64x64xf16>>
    %o_new = tt.dot %p16, %v, %o_scaled : tensor<128x64xf16> * tensor<64x64xf16> -> tensor<128x64xf32>
    %k_next = tt.advance %kj, [%c0, %c64] : <tensor<64x64xf16>>
    %v_next = tt.advance %vj, [%c64, %c0] : <tensor<64x64xf16>>
    scf.yield %o_new, %l_new, %m_new, %k_next, %v_next : tensor<128x64xf32>, tensor<128xf32>, tensor<128xf32>, !tt.ptr<tensor<64x64xf16>>, !tt.ptr<tensor<64x64xf16>>
  }
  %l_column = tt.expand_dims %r#1 {axis = 1 : i32} : tensor<128xf32> -> tensor<128x1xf32>
  %l_block = tt.broadcast %l_column : tensor<128x1xf32> -> tensor<128x64xf32>
  %scaled = arith.divf %r#0, %l_block : tensor<128x64xf32>
  %o16 = arith.truncf %scaled : tensor<128x64xf32> to tensor<128x64xf16>
  tt.store %op, %o16 : !tt.ptr<tensor<128x64xf16>>
  tt.return
}
}
