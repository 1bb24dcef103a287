// RUN: mltriton opt %s -p "hoist-descriptors,canonicalize,cse,assign-layouts,cse,assign-lanes,dce,specialize-warps,copy-blocks,dce,canonicalize,cse" | filecheck %s
// A small block that is loaded beside operands goes along with the one before it: in slots of the same ring, with one
// barrier. An update of memory that orders nothing leaves the copies as they are.

// CHECK-LABEL: @along
// CHECK-DAG: ttng.tensor_map %s, {{.*}} : <f32>, <tensor<1x64xf32>>
// CHECK: ttg.local_alloc : () -> !ttg.memdesc<3x64x64xf16,
// CHECK-NEXT: %[[ROWS:.*]] = ttg.local_alloc : () -> !ttg.memdesc<3x1x64xf32,
// CHECK: ttg.warp_specialize default {
// CHECK: scf.for
// CHECK: ttng.wait_barrier
// CHECK-NOT: ttng.wait_barrier
// CHECK: %[[ROW:.*]] = ttg.memdesc_subview %[[ROWS]][
// CHECK: ttg.local_load %[[ROW]]
// CHECK: tt.atomic_rmw add, relaxed
// CHECK: } partition num_warps(4) {
// CHECK: ttng.barrier_expect %[[COME:.*]], 8448 :
// CHECK: ttng.async_tma_copy_global_to_local {{.*}}, %[[COME]] : !tt.tensordesc<tensor<64x64xf16>>
// CHECK: ttng.async_tma_copy_global_to_local {{.*}}, %[[COME]] : !tt.tensordesc<tensor<1x64xf32>>
module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.specialize-warps" = "all"} {
tt.func public @along(%a: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %s: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %o: !tt.ptr<f32>, %count: !tt.ptr<i32>, %n: i32, %t: i64, %i: i32, %steps: i32) {
  %cst = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
  %one = arith.constant 1 : i64
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c1 = arith.constant 1 : i32
  %zeros = arith.constant dense<0.000000e+00> : tensor<1x64xf32>
  %da = tt.make_tensor_descriptor %a, [%n, %n], [%t, %one] : <f16>, <tensor<64x64xf16>>
  %ds = tt.make_tensor_descriptor %s, [%n, %n], [%t, %one] : <f32>, <tensor<1x64xf32>>
  %sum, %total = scf.for %k = %c0 to %steps step %c64 iter_args(%acc = %cst, %rows = %zeros) -> (tensor<64x64xf32>, tensor<1x64xf32>) : i32 {
    %x = tt.descriptor_load %da[%i, %k] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>
    %y = tt.descriptor_load %ds[%i, %k] : !tt.tensordesc<tensor<1x64xf32>> -> tensor<1x64xf32>
    %z = tt.dot %x, %x, %acc : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
    %old = tt.atomic_rmw add, relaxed, gpu, %count, %c1 : (!tt.ptr<i32>, i32) -> i32
    %w = arith.addf %rows, %y : tensor<1x64xf32>
    scf.yield %z, %w : tensor<64x64xf32>, tensor<1x64xf32>
  }
  %to = tt.splat %o : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
  %every = tt.broadcast %total : tensor<1x64xf32> -> tensor<64x64xf32>
  %both = arith.addf %sum, %every : tensor<64x64xf32>
  tt.store %to, %both : tensor<64x64x!tt.ptr<f32>>
  tt.return
}
}
