// RUN: mltriton opt %s -p "hoist-descriptors,canonicalize,cse,assign-layouts,cse,assign-lanes,cse" | filecheck %s
// An operand that lanes compute and the matrix engine reads from shared memory is computed once: each of the warps has
// lines of its own of it, by 16 bytes of a lane.

// CHECK-DAG: #[[LINES:.*]] = #ttg.linear<{register = {{\[}}[0, 1], [0, 2], [0, 4], [4, 0], [8, 0]], lane = {{\[}}[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = {{\[}}[16, 0], [32, 0]], block = []}>
// CHECK-LABEL: @masked
// CHECK: tt.descriptor_load
// CHECK: %[[V:.*]] = tt.descriptor_load {{.*}} -> tensor<64x64xf16, #[[LINES]]>
// CHECK: %[[KEPT:.*]] = arith.select %{{.*}}, %[[V]],
// CHECK: %[[THERE:.*]] = ttg.local_alloc %[[KEPT]] : (tensor<64x64xf16, #[[LINES]]>) -> !ttg.memdesc<64x64xf16
// CHECK: tt.dot %{{.*}}, %[[THERE]]
module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90"} {
tt.func public @masked(%a: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %o: !tt.ptr<f32>, %n: i32, %t: i64, %length: i32) {
  %cst = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
  %zeros = arith.constant dense<0.000000e+00> : tensor<64x64xf16>
  %one = arith.constant 1 : i64
  %c0 = arith.constant 0 : i32
  %keys = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %last = tt.splat %length : i32 -> tensor<64xi32>
  %inside = arith.cmpi slt, %keys, %last : tensor<64xi32>
  %rows = tt.expand_dims %inside {axis = 1 : i32} : tensor<64xi1> -> tensor<64x1xi1>
  %mask = tt.broadcast %rows : tensor<64x1xi1> -> tensor<64x64xi1>
  %da = tt.make_tensor_descriptor %a, [%n, %n], [%t, %one] : <f16>, <tensor<64x64xf16>>
  %x = tt.descriptor_load %da[%c0, %c0] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>
  %v = tt.descriptor_load %da[%length, %c0] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>
  %kept = arith.select %mask, %v, %zeros : tensor<64x64xi1>, tensor<64x64xf16>
  %z = tt.dot %x, %kept, %cst : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
  %to = tt.splat %o : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
  tt.store %to, %z : tensor<64x64x!tt.ptr<f32>>
  tt.return
}
}
