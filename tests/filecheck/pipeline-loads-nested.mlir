// RUN: mltriton opt %s -p "rewrite-tensor-pointers,assign-layouts,cse,assign-lanes,dce,pipeline-loads{stages=3},dce,canonicalize,cse" | filecheck %s
// The buffers of a loop in a loop: all warps meet before the first copies, so that they may be where other blocks were.

// CHECK-LABEL: @blocks
// CHECK: scf.for
// CHECK: ttg.local_alloc
// CHECK: gpu.barrier
// CHECK: ttg.async_copy_global_to_local
// CHECK: scf.for
// CHECK-NEXT: ttg.async_wait {num = 1 : i32}
// CHECK-NOT: gpu.barrier
module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "mma:ahead"} {
tt.func public @blocks(%a: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %b: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %c: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %blocks: i32, %steps: i32) {
  %zeros = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %size = arith.constant 4096 : i64
  %one = arith.constant 1 : i64
  %line = arith.constant 64 : i64
  scf.for %block = %c0 to %blocks step %c1 : i32 {
    %row = arith.muli %block, %c64 : i32
    %sum = scf.for %i = %c0 to %steps step %c1 iter_args(%acc = %zeros) -> (tensor<64x64xf32>) : i32 {
      %k = arith.muli %i, %c64 : i32
      %pa = tt.make_tensor_ptr %a, [%size, %size], [%size, %one], [%row, %k] {order = array<i32: 1, 0>} : <tensor<64x64xf16>>
      %pb = tt.make_tensor_ptr %b, [%size, %line], [%line, %one], [%k, %c0] {order = array<i32: 1, 0>} : <tensor<64x64xf16>>
      %x = tt.load %pa : !tt.ptr<tensor<64x64xf16>>
      %y = tt.load %pb : !tt.ptr<tensor<64x64xf16>>
      %dot = tt.dot %x, %y, %acc : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %dot : tensor<64x64xf32>
    }
    %pc = tt.make_tensor_ptr %c, [%size, %line], [%line, %one], [%row, %c0] {order = array<i32: 1, 0>} : <tensor<64x64xf32>>
    tt.store %pc, %sum : !tt.ptr<tensor<64x64xf32>>
  }
  tt.return
}
}
