// RUN: mltriton opt %s -p "schedule-loads{ahead=0}" | filecheck %s
// A dot that takes what is made of another's result comes after it, though it loads less.
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 1], instrShape = [16, 8]}>
#both = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 1], instrShape = [16, 8], repCluster = [1, 2]}>
#left = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#right = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
#shared = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
module attributes {"ttg.num-warps" = 1 : i32, ttg.target = "cuda:90", mltriton.level = "intrinsic"} {
// CHECK-LABEL: @chain
// CHECK: %[[D:.*]] = tt.dot %x, %y
// CHECK: %[[E:.*]] = tt.dot %x, %z
// CHECK: ttig.glue %[[D]], %[[E]]
// CHECK: tt.dot %{{.*}}, %y
tt.func public @chain(%m: !ttg.memdesc<16x16xf16, #shared, #ttg.shared_memory, mutable>, %n: !ttg.memdesc<16x8xf16, #shared, #ttg.shared_memory, mutable>, %o: !ttg.memdesc<16x8xf16, #shared, #ttg.shared_memory, mutable>, %c: tensor<16x8xf32, #mma>) {
  %x = ttg.local_load %m : !ttg.memdesc<16x16xf16, #shared, #ttg.shared_memory, mutable> -> tensor<16x16xf16, #left>
  %y = ttg.local_load %n : !ttg.memdesc<16x8xf16, #shared, #ttg.shared_memory, mutable> -> tensor<16x8xf16, #right>
  %z = ttg.local_load %o : !ttg.memdesc<16x8xf16, #shared, #ttg.shared_memory, mutable> -> tensor<16x8xf16, #right>
  %d = tt.dot %x, %y, %c : tensor<16x16xf16, #left> * tensor<16x8xf16, #right> -> tensor<16x8xf32, #mma>
  %e = tt.dot %x, %z, %c : tensor<16x16xf16, #left> * tensor<16x8xf16, #right> -> tensor<16x8xf32, #mma>
  %g = ttig.glue %d, %e : (tensor<16x8xf32, #mma>, tensor<16x8xf32, #mma>) -> tensor<16x16xf32, #both>
  %h = arith.truncf %g : tensor<16x16xf32, #both> to tensor<16x16xf16, #both>
  %p = ttg.convert_layout %h : tensor<16x16xf16, #both> -> tensor<16x16xf16, #left>
  %f = tt.dot %p, %y, %c : tensor<16x16xf16, #left> * tensor<16x8xf16, #right> -> tensor<16x8xf32, #mma>
  tt.return
}
}
