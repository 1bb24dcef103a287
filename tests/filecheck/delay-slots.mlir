// RUN: mltriton opt %s -p "specialize-warps,copy-blocks,dce,canonicalize,cse,delay-slots,start-dots,release-slots" | filecheck %s
// The keys' slot is given back as soon as the scores are there, that of the values an iteration later than the one it
// was filled for: the second product runs then. The first iteration, in front of the loop, has none and gives none
// back, and the last product stands behind the loop, if there was any iteration.

// CHECK-LABEL: @attend
// CHECK: %[[KEYS:.*]] = ttg.local_alloc : () -> !ttg.memdesc<3x64x64xf16,
// CHECK: %[[KF:.*]] = ttg.local_alloc : () -> !ttg.memdesc<3x1xi64,
// CHECK: %[[KE:.*]] = ttg.local_alloc : () -> !ttg.memdesc<3x1xi64,
// CHECK: %[[VALUES:.*]] = ttg.local_alloc : () -> !ttg.memdesc<3x64x64xf16,
// CHECK: %[[VF:.*]] = ttg.local_alloc : () -> !ttg.memdesc<3x1xi64,
// CHECK: %[[VE:.*]] = ttg.local_alloc : () -> !ttg.memdesc<3x1xi64,
// CHECK: ttg.warp_specialize default {
// CHECK: %[[ANY:.*]] = arith.cmpi slt, %c0_i32, %keys
// CHECK-NEXT: %[[FIRST:.*]]:6 = scf.if %[[ANY]]
// CHECK-NEXT: ttg.memdesc_subview %[[KF]][%c0_i32,
// CHECK-NEXT: ttng.wait_barrier
// CHECK: ttng.warp_group_dot %
// CHECK-NOT: ttng.wait_barrier
// CHECK-NOT: ttng.warp_group_dot %
// CHECK: ttg.memdesc_subview %[[KE]][%c0_i32,
// CHECK: ttng.arrive_barrier
// CHECK-NOT: ttng.arrive_barrier
// CHECK: %[[P:.*]] = ttg.convert_layout
// CHECK-NEXT: scf.yield %{{.*}}, %{{.*}}, %{{.*}}, %c0_i32, %c0_i32, %[[P]] :
// CHECK-NEXT: } else {
// CHECK: %[[SECOND:.*]] = arith.addi %c0_i32, %c64_i32
// CHECK: %[[R:.*]], %{{.*}}, %{{.*}}, %[[RS:.*]], %[[RP:.*]], %[[RL:.*]] = scf.for %start = %[[SECOND]] to {{.*}} iter_args(%[[SUMS:.*]] = %[[FIRST]]#0, %[[K:.*]] = %[[FIRST]]#1, %{{.*}} = %[[FIRST]]#2, %[[V:.*]] = %[[FIRST]]#3, %[[VP:.*]] = %[[FIRST]]#4, %[[LEFT:.*]] = %[[FIRST]]#5)
// CHECK: ttg.memdesc_subview %[[KF]][%[[K]],
// CHECK-NEXT: ttng.wait_barrier
// CHECK: %[[S:.*]] = ttng.warp_group_dot
// CHECK: %[[COME:.*]] = ttg.memdesc_subview %[[VF]][%[[V]],
// CHECK-NEXT: ttng.wait_barrier %[[COME]], %[[VP]]
// CHECK: %[[RIGHT:.*]] = ttg.memdesc_subview %[[VALUES]][%[[V]],
// CHECK-NEXT: %[[D:.*]] = ttng.warp_group_dot %[[LEFT]], %[[RIGHT]], %[[SUMS]] {isAsync = true}
// CHECK: ttng.warp_group_dot_wait %[[S]] {pendings = 1 : i32}
// CHECK-NEXT: %[[FREE:.*]] = ttg.memdesc_subview %[[KE]][%[[K]],
// CHECK-NEXT: ttng.arrive_barrier %[[FREE]], 4 :
// CHECK: ttng.warp_group_dot_wait %[[D]], %[[LEFT]] :
// CHECK: %[[FREED:.*]] = ttg.memdesc_subview %[[VE]][%[[V]],
// CHECK-NEXT: ttng.arrive_barrier %[[FREED]], 4 :
// CHECK: scf.if %[[ANY]]
// CHECK: ttg.memdesc_subview %[[VF]][%[[RS]],
// CHECK-NEXT: ttng.wait_barrier %{{.*}}, %[[RP]]
// CHECK: ttng.warp_group_dot %[[RL]], %{{.*}}, %[[R]] {isAsync = true}
// CHECK: ttng.warp_group_dot_wait
// CHECK: ttng.arrive_barrier
// CHECK: } else {
// CHECK: partition num_warps(4)
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#linear = #ttg.linear<{register = [[0, 32], [1, 0], [2, 0], [4, 0], [8, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], warp = [[16, 0], [32, 0]], block = []}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#linear1 = #ttg.linear<{register = [[0, 1], [0, 2], [0, 4], [4, 0], [8, 0], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[0, 64], [0, 128]], block = []}>
#linear2 = #ttg.linear<{register = [[0, 32], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], warp = [[64, 0], [128, 0]], block = []}>
#dot0 = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
module attributes {mltriton.level = "ttg", "ttg.num-stages" = 2 : i32, "ttg.num-warps" = 4 : i32, "ttg.specialize-warps" = "all", ttg.target = "cuda:90", "ttg.tensor-maps" = "products", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @attend(%q: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %k: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %v: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %out: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %keys: i32 {tt.divisibility = 16 : i32}) {
    %c64_i64 = arith.constant 64 : i64
    %c1_i64 = arith.constant 1 : i64
    %c64_i32 = arith.constant 64 : i32
    %c0_i32 = arith.constant 0 : i32
    %result = arith.constant dense<0.000000e+00> : tensor<64x64xf32, #mma>
    %cst = arith.constant dense<5.000000e-01> : tensor<64x64xf32, #mma>
    %0 = ttng.tensor_map %q, [%c64_i64, %c64_i64], [%c64_i64, %c1_i64] : <f16>, <tensor<64x64xf16>>
    %1 = arith.extsi %keys : i32 to i64
    %2 = ttng.tensor_map %k, [%1, %c64_i64], [%c64_i64, %c1_i64] : <f16>, <tensor<64x64xf16>>
    %3 = ttng.tensor_map %v, [%1, %c64_i64], [%c64_i64, %c1_i64] : <f16>, <tensor<64x64xf16>>
    %4 = ttng.tensor_map %out, [%c64_i64, %c64_i64], [%c64_i64, %c1_i64] : <f16>, <tensor<64x64xf16>>
    %x = tt.descriptor_load %0[%c0_i32, %c0_i32] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16, #linear>
    %5 = ttg.local_alloc %x : (tensor<64x64xf16, #linear>) -> !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable>
    %result_0 = scf.for %start = %c0_i32 to %keys step %c64_i32 iter_args(%result_1 = %result) -> (tensor<64x64xf32, #mma>) : i32 {
      %6 = tt.descriptor_load %2[%start, %c0_i32] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16, #linear1>
      %7 = tt.trans %6 {order = array<i32: 1, 0>} : tensor<64x64xf16, #linear1> -> tensor<64x64xf16, #linear2>
      %8 = ttg.local_alloc %7 : (tensor<64x64xf16, #linear2>) -> !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable>
      %9 = tt.dot %5, %8, %result : !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable> * !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable> -> tensor<64x64xf32, #mma>
      %scores = math.exp2 %9 : tensor<64x64xf32, #mma>
      %10 = arith.truncf %scores : tensor<64x64xf32, #mma> to tensor<64x64xf16, #mma>
      %11 = tt.descriptor_load %3[%start, %c0_i32] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16, #linear2>
      %12 = arith.mulf %result_1, %cst : tensor<64x64xf32, #mma>
      %13 = ttg.convert_layout %10 : tensor<64x64xf16, #mma> -> tensor<64x64xf16, #dot0>
      %14 = ttg.local_alloc %11 : (tensor<64x64xf16, #linear2>) -> !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable>
      %result_2 = tt.dot %13, %14, %12 : tensor<64x64xf16, #dot0> * !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable> -> tensor<64x64xf32, #mma>
      scf.yield %result_2 : tensor<64x64xf32, #mma>
    }
    %15 = arith.truncf %result_0 : tensor<64x64xf32, #mma> to tensor<64x64xf16, #mma>
    tt.descriptor_store %4[%c0_i32, %c0_i32], %15 : !tt.tensordesc<tensor<64x64xf16>>, tensor<64x64xf16, #mma>
    tt.return
  }
}
