// RUN: not mltriton opt %s -p check-registers 2>&1 | filecheck %s
// A loop of products may need 1275 registers of a lane, most of them in memory: 1024 of a sum, but not 2048; what is
// multiplied outside of loops may need any number.
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 1], instrShape = [16, 8]}>
#dot0 = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#dot1 = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
#all = #ttg.linear<{register = [[32], [64], [128], [256], [512], [1024], [2048], [4096], [8192], [16384]], lane = [[1], [2], [4], [8], [16]], warp = [], block = []}>
module attributes {mltriton.level = "intrinsic", "ttg.num-warps" = 1 : i32, ttg.target = "cuda:90"} {
tt.func public @some(%a: tensor<16x16xf16, #dot0>, %b: tensor<16x8xf16, #dot1>, %c: tensor<16x8xf32, #mma>, %s0: tensor<32768xf32, #all>, %x: !tt.ptr<f32>, %n: i32) {
  %at = tt.make_range {end = 32768 : i32, start = 0 : i32} : tensor<32768xi32, #all>
  %base = tt.splat %x : !tt.ptr<f32> -> tensor<32768x!tt.ptr<f32>, #all>
  %p = tt.addptr %base, %at : tensor<32768x!tt.ptr<f32>, #all>, tensor<32768xi32, #all>
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %r:2 = scf.for %i = %zero to %n step %one iter_args(%old = %c, %o0 = %s0) -> (tensor<16x8xf32, #mma>, tensor<32768xf32, #all>) : i32 {
    %new = tt.dot %a, %b, %old, inputPrecision = tf32 : tensor<16x16xf16, #dot0> * tensor<16x8xf16, #dot1> -> tensor<16x8xf32, #mma>
    %n0 = arith.addf %o0, %o0 : tensor<32768xf32, #all>
    scf.yield %new, %n0 : tensor<16x8xf32, #mma>, tensor<32768xf32, #all>
  }
  tt.store %p, %r#1 : tensor<32768x!tt.ptr<f32>, #all>
  tt.return
}
tt.func public @once(%a: tensor<16x16xf16, #dot0>, %b: tensor<16x8xf16, #dot1>, %c: tensor<16x8xf32, #mma>, %s0: tensor<32768xf32, #all>, %s1: tensor<32768xf32, #all>, %x: !tt.ptr<f32>, %n: i32) {
  %at = tt.make_range {end = 32768 : i32, start = 0 : i32} : tensor<32768xi32, #all>
  %base = tt.splat %x : !tt.ptr<f32> -> tensor<32768x!tt.ptr<f32>, #all>
  %p = tt.addptr %base, %at : tensor<32768x!tt.ptr<f32>, #all>, tensor<32768xi32, #all>
  %new = tt.dot %a, %b, %c, inputPrecision = tf32 : tensor<16x16xf16, #dot0> * tensor<16x8xf16, #dot1> -> tensor<16x8xf32, #mma>
  tt.store %p, %s0 : tensor<32768x!tt.ptr<f32>, #all>
  tt.store %p, %s1 : tensor<32768x!tt.ptr<f32>, #all>
  tt.return
}
// CHECK: check-registers.mlir:41:{{[0-9]+}}: OutOfResources: blocks beside this product need more registers than a lane
// CHECK: expected at most 1275, most of them in memory, found about 20{{[0-9]+}}
tt.func public @many(%a: tensor<16x16xf16, #dot0>, %b: tensor<16x8xf16, #dot1>, %c: tensor<16x8xf32, #mma>, %s0: tensor<32768xf32, #all>, %s1: tensor<32768xf32, #all>, %x: !tt.ptr<f32>, %n: i32) {
  %at = tt.make_range {end = 32768 : i32, start = 0 : i32} : tensor<32768xi32, #all>
  %base = tt.splat %x : !tt.ptr<f32> -> tensor<32768x!tt.ptr<f32>, #all>
  %p = tt.addptr %base, %at : tensor<32768x!tt.ptr<f32>, #all>, tensor<32768xi32, #all>
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %r:3 = scf.for %i = %zero to %n step %one iter_args(%old = %c, %o0 = %s0, %o1 = %s1) -> (tensor<16x8xf32, #mma>, tensor<32768xf32, #all>, tensor<32768xf32, #all>) : i32 {
    %new = tt.dot %a, %b, %old, inputPrecision = tf32 : tensor<16x16xf16, #dot0> * tensor<16x8xf16, #dot1> -> tensor<16x8xf32, #mma>
    %n0 = arith.addf %o0, %o0 : tensor<32768xf32, #all>
    %n1 = arith.addf %o1, %o1 : tensor<32768xf32, #all>
    scf.yield %new, %n0, %n1 : tensor<16x8xf32, #mma>, tensor<32768xf32, #all>, tensor<32768xf32, #all>
  }
  tt.store %p, %r#1 : tensor<32768x!tt.ptr<f32>, #all>
  tt.store %p, %r#2 : tensor<32768x!tt.ptr<f32>, #all>
  tt.return
}
}
