// RUN: mltriton opt %s -p "match-target-size,canonicalize,cse,dce" | filecheck %s
// Where lanes matter pieces keep an encoding, that of one warp: one load of a, one of b, a dot of one instruction for
// each 8x16 of the result, conversions between what a load brings and what the dot takes.
// CHECK-DAG: #[[DPAS:.*]] = #ttig.dpas<{repeatCount = 8, {{.*}} warpsPerCTA = [1, 1], repCluster = [1, 1]}>
// CHECK-DAG: #[[A:.*]] = #ttig.subgroup_2d_block<{warpsPerCTA = [1, 1], instrShape = [32, 16], numBlocks = 2, order = [1, 0], {{.*}}}>
// CHECK-DAG: #[[B:.*]] = #ttig.subgroup_2d_block<{warpsPerCTA = [1, 1], instrShape = [32, 16], numBlocks = 2, order = [0, 1], {{.*}}}>
// CHECK-DAG: #[[C:.*]] = #ttig.subgroup_2d_block<{warpsPerCTA = [1, 1], instrShape = [8, 16], numBlocks = 1, {{.*}}}>
// CHECK-DAG: #[[DOWN:.*]] = #ttig.dpas<{repeatCount = 8, {{.*}} warpsPerCTA = [1, 1], repCluster = [4, 1]}>
// CHECK-DAG: #[[ACROSS:.*]] = #ttig.dpas<{repeatCount = 8, {{.*}} warpsPerCTA = [1, 1], repCluster = [1, 2]}>
// CHECK-DAG: #[[DOTA:.*]] = #ttg.dot_op<{opIdx = 0, parent = #[[DOWN]]}>
// CHECK-DAG: #[[DOTB:.*]] = #ttg.dot_op<{opIdx = 1, parent = #[[ACROSS]]}>
// CHECK-DAG: #[[DOT0:.*]] = #ttg.dot_op<{opIdx = 0, parent = #[[DPAS]]}>
// CHECK-DAG: #[[DOT1:.*]] = #ttg.dot_op<{opIdx = 1, parent = #[[DPAS]]}>
#dpas = #ttig.dpas<{repeatCount = 8, systolicDepth = 8, executionSize = 16, opsPerChan = 2, threadsPerWarp = 16, warpsPerCTA = [4, 2], repCluster = [4, 2]}>
#a = #ttig.subgroup_2d_block<{warpsPerCTA = [4, 2], instrShape = [32, 16], numBlocks = 2, order = [1, 0], kWidth = 2, threadsPerWarp = 16}>
#b = #ttig.subgroup_2d_block<{warpsPerCTA = [4, 2], instrShape = [32, 16], numBlocks = 2, order = [0, 1], kWidth = 2, threadsPerWarp = 16}>
#c = #ttig.subgroup_2d_block<{warpsPerCTA = [4, 2], instrShape = [8, 16], numBlocks = 1, order = [1, 0], kWidth = 4, threadsPerWarp = 16, sizePerWarp = [32, 32]}>
#dot0 = #ttg.dot_op<{opIdx = 0, parent = #dpas}>
#dot1 = #ttg.dot_op<{opIdx = 1, parent = #dpas}>
module attributes {mltriton.level = "warp", "ttg.num-warps" = 8 : i32, ttg.target = "xe:pvc", "ttg.threads-per-warp" = 16 : i32} {

// CHECK-LABEL: @gemm
// CHECK: %[[X:.*]] = tt.load {{.*}} : !tt.ptr<tensor<32x32xf16, #[[A]]>>
// CHECK: %[[Y:.*]] = tt.load {{.*}} : !tt.ptr<tensor<32x32xf16, #[[B]]>>
// CHECK: %[[XD:.*]] = ttg.convert_layout %[[X]] : tensor<32x32xf16, #[[A]]> -> tensor<32x32xf16, #[[DOTA]]>
// CHECK: %[[YD:.*]] = ttg.convert_layout %[[Y]] : tensor<32x32xf16, #[[B]]> -> tensor<32x32xf16, #[[DOTB]]>
// CHECK: %[[X0:.*]] = ttig.extract %[[XD]][0] : tensor<32x32xf16, #[[DOTA]]> -> tensor<8x16xf16, #[[DOT0]]>
// CHECK: %[[Y0:.*]] = ttig.extract %[[YD]][0] : tensor<32x32xf16, #[[DOTB]]> -> tensor<16x16xf16, #[[DOT1]]>
// CHECK-COUNT-16: tt.dot {{.*}} -> tensor<8x16xf32, #[[DPAS]]>
// CHECK-NOT: tt.dot
// CHECK-COUNT-8: tt.store {{.*}} : !tt.ptr<tensor<8x16xf32, #[[C]]>>
tt.func @gemm(%a: !tt.ptr<f16>, %b: !tt.ptr<f16>, %c: !tt.ptr<f32>, %n: i64, %i: i32) {
  %one = arith.constant 1 : i64
  %pa = tt.make_tensor_ptr %a, [%n, %n], [%n, %one], [%i, %i] {order = array<i32: 1, 0>} : <tensor<32x32xf16, #a>>
  %pb = tt.make_tensor_ptr %b, [%n, %n], [%n, %one], [%i, %i] {order = array<i32: 1, 0>} : <tensor<32x32xf16, #b>>
  %pc = tt.make_tensor_ptr %c, [%n, %n], [%n, %one], [%i, %i] {order = array<i32: 1, 0>} : <tensor<32x32xf32, #c>>
  %zero = arith.constant dense<0.0> : tensor<32x32xf32, #dpas>
  %x = tt.load %pa : !tt.ptr<tensor<32x32xf16, #a>>
  %y = tt.load %pb : !tt.ptr<tensor<32x32xf16, #b>>
  %xd = ttg.convert_layout %x : tensor<32x32xf16, #a> -> tensor<32x32xf16, #dot0>
  %yd = ttg.convert_layout %y : tensor<32x32xf16, #b> -> tensor<32x32xf16, #dot1>
  %r = tt.dot %xd, %yd, %zero : tensor<32x32xf16, #dot0> * tensor<32x32xf16, #dot1> -> tensor<32x32xf32, #dpas>
  %s = ttg.convert_layout %r : tensor<32x32xf32, #dpas> -> tensor<32x32xf32, #c>
  tt.store %pc, %s : !tt.ptr<tensor<32x32xf32, #c>>
  tt.return
}
}
