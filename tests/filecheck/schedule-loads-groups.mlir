// RUN: mltriton opt %s -p "schedule-loads{ahead=1}" | filecheck %s
// Products that go on by themselves keep their order: waits count their groups.
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [1, 1], instrShape = [16, 64, 16]}>
#left = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", mltriton.level = "intrinsic"} {
// CHECK-LABEL: @two_products
// CHECK: %[[D:.*]] = ttng.warp_group_dot %x, {{.*}}continues
// CHECK: %[[E:.*]] = ttng.warp_group_dot %y, {{.*}}isAsync = true
// CHECK: %[[F:.*]] = ttng.warp_group_dot %x, {{.*}}isAsync = true
// CHECK: ttng.warp_group_dot_wait %[[D]], %[[E]], %[[F]]
tt.func public @two_products(%m: !ttg.memdesc<16x16xf16, #shared, #ttg.shared_memory, mutable>, %n: !ttg.memdesc<16x16xf16, #shared, #ttg.shared_memory, mutable>, %b: !ttg.memdesc<16x64xf16, #shared, #ttg.shared_memory, mutable>, %c: tensor<16x64xf32, #mma>) {
  %x = ttg.local_load %m : !ttg.memdesc<16x16xf16, #shared, #ttg.shared_memory, mutable> -> tensor<16x16xf16, #left>
  %y = ttg.local_load %n : !ttg.memdesc<16x16xf16, #shared, #ttg.shared_memory, mutable> -> tensor<16x16xf16, #left>
  %d = ttng.warp_group_dot %x, %b, %c {isAsync = true, continues = true} : tensor<16x16xf16, #left> * !ttg.memdesc<16x64xf16, #shared, #ttg.shared_memory, mutable> -> tensor<16x64xf32, #mma>
  %e = ttng.warp_group_dot %y, %b, %c {isAsync = true} : tensor<16x16xf16, #left> * !ttg.memdesc<16x64xf16, #shared, #ttg.shared_memory, mutable> -> tensor<16x64xf32, #mma>
  %f = ttng.warp_group_dot %x, %b, %c {isAsync = true} : tensor<16x16xf16, #left> * !ttg.memdesc<16x64xf16, #shared, #ttg.shared_memory, mutable> -> tensor<16x64xf32, #mma>
  %r, %s, %t = ttng.warp_group_dot_wait %d, %e, %f : (tensor<16x64xf32, #mma>, tensor<16x64xf32, #mma>, tensor<16x64xf32, #mma>) -> (tensor<16x64xf32, #mma>, tensor<16x64xf32, #mma>, tensor<16x64xf32, #mma>)
  tt.return
}
}
