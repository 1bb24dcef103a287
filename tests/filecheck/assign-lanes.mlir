// RUN: mltriton opt %s -p "assign-layouts,cse,assign-lanes,cse" | filecheck %s
// Encodings with lanes: blocks for 2D accesses, the matrix engine's for dots, neighbouring lanes for the rest.
// CHECK-DAG: #[[LINEAR:.*]] = #ttg.linear<{register = {{\[}}[1], [2], [64], [128]], lane = {{\[}}[4], [8], [16], [32]], warp = {{\[}}[256], [512], [1024], [2048], [4096]], block = []}>
// CHECK-DAG: #[[DPAS:.*]] = #ttig.dpas<{repeatCount = 8, {{.*}} opsPerChan = 2, threadsPerWarp = 16, warpsPerCTA = [8, 4], repCluster = [4, 4]}>
// CHECK-DAG: #[[DOT0:.*]] = #ttg.dot_op<{opIdx = 0, parent = #[[DPAS]]}>
// CHECK-DAG: #[[DOT1:.*]] = #ttg.dot_op<{opIdx = 1, parent = #[[DPAS]]}>
// CHECK-DAG: #[[A:.*]] = #ttig.subgroup_2d_block<{warpsPerCTA = [8, 4], instrShape = [32, 16], numBlocks = 2, order = [1, 0], kWidth = 2, threadsPerWarp = 16}>
// CHECK-DAG: #[[B:.*]] = #ttig.subgroup_2d_block<{warpsPerCTA = [8, 4], instrShape = [32, 16], numBlocks = 2, order = [0, 1], kWidth = 2, threadsPerWarp = 16, sizePerWarp = [32, 64]}>
// CHECK-DAG: #[[BT:.*]] = #ttig.subgroup_2d_block<{warpsPerCTA = [8, 4], instrShape = [16, 16], numBlocks = 1, order = [0, 1], kWidth = 2, threadsPerWarp = 16, sizePerWarp = [32, 64]}>
// CHECK-DAG: #[[C:.*]] = #ttig.subgroup_2d_block<{warpsPerCTA = [8, 4], instrShape = [8, 16], numBlocks = 1, order = [1, 0], kWidth = 4, threadsPerWarp = 16, sizePerWarp = [32, 64]}>
module attributes {"ttg.num-warps" = 32 : i32, ttg.target = "xe:pvc"} {

// CHECK-LABEL: @gemm
// CHECK: tt.make_tensor_ptr %a{{.*}} : <tensor<256x32xf16, #[[A]]>>
// CHECK: tt.make_tensor_ptr %b{{.*}} : <tensor<32x256xf16, #[[B]]>>
// CHECK: tt.make_tensor_ptr %c{{.*}} : <tensor<256x256xf32, #[[C]]>>
// CHECK: %[[X:.*]] = tt.load
// CHECK: %[[XD:.*]] = ttg.convert_layout %[[X]] : tensor<256x32xf16, #[[A]]> -> tensor<256x32xf16, #[[DOT0]]>
// CHECK: %[[Y:.*]] = tt.load
// CHECK: %[[YD:.*]] = ttg.convert_layout %[[Y]] : tensor<32x256xf16, #[[B]]> -> tensor<32x256xf16, #[[DOT1]]>
// CHECK: %[[R:.*]] = tt.dot %[[XD]], %[[YD]], {{.*}} -> tensor<256x256xf32, #[[DPAS]]>
// CHECK: %[[S:.*]] = ttg.convert_layout %[[R]] : {{.*}} -> tensor<256x256xf32, #[[C]]>
// CHECK: tt.store {{.*}}, %[[S]]
tt.func @gemm(%a: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %b: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %c: !tt.ptr<f32>, %n: i64 {tt.divisibility = 16 : i32}, %i: i32) {
  %one = arith.constant 1 : i64
  %zero = arith.constant dense<0.0> : tensor<256x256xf32>
  %pa = tt.make_tensor_ptr %a, [%n, %n], [%n, %one], [%i, %i] {order = array<i32: 1, 0>} : <tensor<256x32xf16>>
  %pb = tt.make_tensor_ptr %b, [%n, %n], [%n, %one], [%i, %i] {order = array<i32: 1, 0>} : <tensor<32x256xf16>>
  %pc = tt.make_tensor_ptr %c, [%n, %n], [%n, %one], [%i, %i] {order = array<i32: 1, 0>} : <tensor<256x256xf32>>
  %x = tt.load %pa : !tt.ptr<tensor<256x32xf16>>
  %y = tt.load %pb : !tt.ptr<tensor<32x256xf16>>
  %r = tt.dot %x, %y, %zero : tensor<256x32xf16> * tensor<32x256xf16> -> tensor<256x256xf32>
  tt.store %pc, %r : !tt.ptr<tensor<256x256xf32>>
  tt.return
}

// Memory in which the columns of b lie next to each other is transposed on the way, 32 bits at a time.
// CHECK-LABEL: @transposed
// CHECK: tt.make_tensor_ptr %b{{.*}} : <tensor<32x256xf16, #[[BT]]>>
tt.func @transposed(%b: !tt.ptr<f16>, %c: !tt.ptr<f32>, %n: i64 {tt.divisibility = 16 : i32}, %i: i32) {
  %one = arith.constant 1 : i64
  %zero = arith.constant dense<0.0> : tensor<256x256xf32>
  %a = arith.constant dense<1.0> : tensor<256x32xf16>
  %pb = tt.make_tensor_ptr %b, [%n, %n], [%one, %n], [%i, %i] {order = array<i32: 0, 1>} : <tensor<32x256xf16>>
  %y = tt.load %pb : !tt.ptr<tensor<32x256xf16>>
  %r = tt.dot %a, %y, %zero : tensor<256x32xf16> * tensor<32x256xf16> -> tensor<256x256xf32>
  %pc = tt.make_tensor_ptr %c, [%one, %one], [%one, %one], [%i, %i] {order = array<i32: 1, 0>} : <tensor<256x256xf32>>
  tt.store %pc, %r : !tt.ptr<tensor<256x256xf32>>
  tt.return
}

// Rows that are 50 elements apart break the rule on pitches: lanes load their own elements in the layout of the dot.
// CHECK-LABEL: @odd_pitch
// CHECK: tt.make_tensor_ptr %b{{.*}} : <tensor<32x256xf16, #[[DOT1]]>>
tt.func @odd_pitch(%b: !tt.ptr<f16>, %c: !tt.ptr<f32>, %i: i32) {
  %one = arith.constant 1 : i64
  %pitch = arith.constant 50 : i64
  %zero = arith.constant dense<0.0> : tensor<256x256xf32>
  %a = arith.constant dense<1.0> : tensor<256x32xf16>
  %pb = tt.make_tensor_ptr %b, [%pitch, %pitch], [%pitch, %one], [%i, %i] {order = array<i32: 1, 0>} : <tensor<32x256xf16>>
  %y = tt.load %pb : !tt.ptr<tensor<32x256xf16>>
  %r = tt.dot %a, %y, %zero : tensor<256x32xf16> * tensor<32x256xf16> -> tensor<256x256xf32>
  %pc = tt.make_tensor_ptr %c, [%one, %one], [%one, %one], [%i, %i] {order = array<i32: 1, 0>} : <tensor<256x256xf32>>
  tt.store %pc, %r : !tt.ptr<tensor<256x256xf32>>
  tt.return
}

// Four floats for each lane, then the next lane.
// CHECK-LABEL: @elements
// CHECK: tt.load {{.*}} : tensor<8192x!tt.ptr<f32>, #[[LINEAR]]>
tt.func @elements(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
  %r = tt.make_range {start = 0 : i32, end = 8192 : i32} : tensor<8192xi32>
  %s = tt.splat %x : !tt.ptr<f32> -> tensor<8192x!tt.ptr<f32>>
  %p = tt.addptr %s, %r : tensor<8192x!tt.ptr<f32>>, tensor<8192xi32>
  %v = tt.load %p : tensor<8192x!tt.ptr<f32>>
  tt.store %p, %v : tensor<8192x!tt.ptr<f32>>
  tt.return
}
}
