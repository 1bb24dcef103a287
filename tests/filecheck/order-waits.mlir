// RUN: mltriton opt %s -p "order-waits" | filecheck %s
// What is summed up between the start of a product and the wait for it becomes an input of the wait; sums from before the
// start do not, and what the wait gave before it still gives.
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#row = #ttg.slice<{dim = 1, parent = #mma}>
#dot0 = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "mma:grouped", mltriton.level = "ttg"} {
// CHECK-LABEL: @softmax
// CHECK: %[[D:.*]] = ttng.warp_group_dot %[[A:.*]], %
// CHECK: %[[P:.*]] = math.exp2
// CHECK-NEXT: %[[L:.*]] = "tt.reduce"(%[[P]])
// CHECK: %[[R:.*]], %{{.*}}, %{{.*}} = ttng.warp_group_dot_wait %[[D]], %[[A]], %[[L]] {pendings = 0 : i32} :
// CHECK-NEXT: tt.return %[[R]], %[[L]]
tt.func public @softmax(%a: tensor<64x64xf16, #dot0>, %b: !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable>, %c: tensor<64x64xf32, #mma>, %s: tensor<64x64xf32, #mma>) -> (tensor<64x64xf32, #mma>, tensor<64xf32, #row>) {
  %d = ttng.warp_group_dot %a, %b, %c {isAsync = true} : tensor<64x64xf16, #dot0> * !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable> -> tensor<64x64xf32, #mma>
  %p = math.exp2 %s : tensor<64x64xf32, #mma>
  %l = "tt.reduce"(%p) <{axis = 1 : i32}> ({
  ^bb0(%x: f32, %y: f32):
    %z = arith.addf %x, %y : f32
    tt.reduce.return %z : f32
  }) : (tensor<64x64xf32, #mma>) -> tensor<64xf32, #row>
  %r:2 = ttng.warp_group_dot_wait %d, %a {pendings = 0 : i32} : (tensor<64x64xf32, #mma>, tensor<64x64xf16, #dot0>) -> (tensor<64x64xf32, #mma>, tensor<64x64xf16, #dot0>)
  tt.return %r#0, %l : tensor<64x64xf32, #mma>, tensor<64xf32, #row>
}

// CHECK-LABEL: @before
// CHECK: ttng.warp_group_dot_wait %{{[a-z0-9]*}} {pendings = 0 : i32} :
tt.func public @before(%a: tensor<64x64xf16, #dot0>, %b: !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable>, %c: tensor<64x64xf32, #mma>, %s: tensor<64x64xf32, #mma>) -> (tensor<64x64xf32, #mma>, tensor<64xf32, #row>) {
  %l = "tt.reduce"(%s) <{axis = 1 : i32}> ({
  ^bb0(%x: f32, %y: f32):
    %z = arith.addf %x, %y : f32
    tt.reduce.return %z : f32
  }) : (tensor<64x64xf32, #mma>) -> tensor<64xf32, #row>
  %d = ttng.warp_group_dot %a, %b, %c {isAsync = true} : tensor<64x64xf16, #dot0> * !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable> -> tensor<64x64xf32, #mma>
  %r = ttng.warp_group_dot_wait %d {pendings = 0 : i32} : (tensor<64x64xf32, #mma>) -> tensor<64x64xf32, #mma>
  tt.return %r, %l : tensor<64x64xf32, #mma>, tensor<64xf32, #row>
}
}
