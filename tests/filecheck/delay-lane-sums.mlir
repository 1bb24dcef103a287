// RUN: mltriton opt %s -p "delay-lane-sums,dce" | filecheck %s
// Four lanes share a row out: a loop carries a part of each, and they are summed up behind it. The branch in front, and the
// loop behind that goes on with the sum, carry parts, too.
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#row = #ttg.slice<{dim = 1, parent = #mma}>
module attributes {mltriton.level = "warp", "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
// CHECK: #[[PARTS:.*]] = #ttg.linear<{register = {{\[\[}}8, 0]], lane = {{\[\[}}0, 1], [0, 2], [1, 0], [2, 0], [4, 0]], warp = [], block = []}>
// CHECK-LABEL: @softmax
// CHECK: %[[FIRST:.*]] = scf.if %any -> (tensor<16x4xf32, #[[PARTS]]>) {
// CHECK: "tt.reduce"(%{{.*}}) <{axis = 3 : i32}>
// CHECK: "tt.reduce"(%{{.*}}) <{axis = 1 : i32}>
// CHECK-NOT: "tt.reduce"
// CHECK: %[[SUM:.*]] = scf.for {{.*}} iter_args(%[[L:.*]] = %[[FIRST]]) -> (tensor<16x4xf32, #[[PARTS]]>)
// CHECK: %[[EACH:.*]] = tt.broadcast
// CHECK-NEXT: %[[SCALED:.*]] = arith.mulf %[[L]], %[[EACH]]
// CHECK: "tt.reduce"(%{{.*}}) <{axis = 3 : i32}>
// CHECK: "tt.reduce"(%{{.*}}) <{axis = 1 : i32}>
// CHECK: arith.addf %[[SCALED]], %{{.*}} : tensor<16x4xf32, #[[PARTS]]>
// CHECK: %[[ALL:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[SUM]]) -> (tensor<16x4xf32, #[[PARTS]]>)
// CHECK: %[[WHOLE:.*]] = "tt.reduce"(%[[ALL]]) <{axis = 1 : i32}>
// CHECK: %[[ROWS:.*]] = ttg.convert_layout %[[WHOLE]]
// CHECK: math.log2 %[[ROWS]]
tt.func public @softmax(%p: tensor<16x64xf32, #mma>, %alpha: tensor<16xf32, #row>, %n: i32, %any: i1, %out: tensor<16x!tt.ptr<f32>, #row>) {
  %zero = arith.constant dense<0.0> : tensor<16xf32, #row>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %first = scf.if %any -> (tensor<16xf32, #row>) {
    %s = "tt.reduce"(%p) ({
    ^bb0(%a: f32, %b: f32):
      %m = arith.addf %a, %b : f32
      tt.reduce.return %m : f32
    }) {axis = 1 : i32} : (tensor<16x64xf32, #mma>) -> tensor<16xf32, #row>
    %t = arith.addf %zero, %s : tensor<16xf32, #row>
    scf.yield %t : tensor<16xf32, #row>
  } else {
    scf.yield %zero : tensor<16xf32, #row>
  }
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%l = %first) -> (tensor<16xf32, #row>) : i32 {
    %scaled = arith.mulf %l, %alpha : tensor<16xf32, #row>
    %s = "tt.reduce"(%p) ({
    ^bb0(%a: f32, %b: f32):
      %m = arith.addf %a, %b : f32
      tt.reduce.return %m : f32
    }) {axis = 1 : i32} : (tensor<16x64xf32, #mma>) -> tensor<16xf32, #row>
    %t = arith.addf %scaled, %s : tensor<16xf32, #row>
    scf.yield %t : tensor<16xf32, #row>
  }
  %all = scf.for %i = %c0 to %n step %c1 iter_args(%l = %sum) -> (tensor<16xf32, #row>) : i32 {
    %s = "tt.reduce"(%p) ({
    ^bb0(%a: f32, %b: f32):
      %m = arith.addf %a, %b : f32
      tt.reduce.return %m : f32
    }) {axis = 1 : i32} : (tensor<16x64xf32, #mma>) -> tensor<16xf32, #row>
    %t = arith.addf %l, %s : tensor<16xf32, #row>
    scf.yield %t : tensor<16xf32, #row>
  }
  %log = math.log2 %all : tensor<16xf32, #row>
  tt.store %out, %log : tensor<16x!tt.ptr<f32>, #row>
  tt.return
}

// What begins with another number than 0, and what the loop takes otherwise, stays as it is.
// CHECK-LABEL: @stays
// CHECK: scf.for {{.*}} -> (tensor<16xf32,
// CHECK: scf.for {{.*}} -> (tensor<16xf32,
tt.func public @stays(%p: tensor<16x64xf32, #mma>, %before: tensor<16xf32, #row>, %n: i32, %out: tensor<16x!tt.ptr<f32>, #row>) {
  %zero = arith.constant dense<0.0> : tensor<16xf32, #row>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%l = %before) -> (tensor<16xf32, #row>) : i32 {
    %s = "tt.reduce"(%p) ({
    ^bb0(%a: f32, %b: f32):
      %m = arith.addf %a, %b : f32
      tt.reduce.return %m : f32
    }) {axis = 1 : i32} : (tensor<16x64xf32, #mma>) -> tensor<16xf32, #row>
    %t = arith.addf %l, %s : tensor<16xf32, #row>
    scf.yield %t : tensor<16xf32, #row>
  }
  tt.store %out, %sum : tensor<16x!tt.ptr<f32>, #row>
  %other = scf.for %i = %c0 to %n step %c1 iter_args(%l = %zero) -> (tensor<16xf32, #row>) : i32 {
    tt.store %out, %l : tensor<16x!tt.ptr<f32>, #row>
    %s = "tt.reduce"(%p) ({
    ^bb0(%a: f32, %b: f32):
      %m = arith.addf %a, %b : f32
      tt.reduce.return %m : f32
    }) {axis = 1 : i32} : (tensor<16x64xf32, #mma>) -> tensor<16xf32, #row>
    %t = arith.addf %l, %s : tensor<16xf32, #row>
    scf.yield %t : tensor<16xf32, #row>
  }
  tt.store %out, %other : tensor<16x!tt.ptr<f32>, #row>
  tt.return
}
}
