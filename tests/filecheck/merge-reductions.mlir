// RUN: mltriton opt %s -p "merge-reductions" | filecheck %s
// Sums and maxima of four warps' blocks cross warps together, but where one follows from the other.
#warps = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#one = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {mltriton.level = "ttg", "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90"} {
// What takes the first result moves behind the second; what it needs and the store stay.
// CHECK-LABEL: @both
// CHECK: tt.store
// CHECK-NEXT: [[BOTH:%.*]]:2 = "tt.reduce"(%x, %y)
// CHECK-NEXT: (%[[A:.*]]: f32, %[[B:.*]]: i32, %[[C:.*]]: f32, %[[D:.*]]: i32)
// CHECK-DAG: [[SUM:%.*]] = arith.addf %[[A]], %[[C]] : f32
// CHECK-DAG: [[MOST:%.*]] = arith.maxsi %[[B]], %[[D]] : i32
// CHECK: tt.reduce.return [[SUM]], [[MOST]]
// CHECK: (f32, i32)
// CHECK: [[HALF:%.*]] = arith.mulf [[BOTH]]#0, %half
// CHECK: tt.return [[HALF]], [[BOTH]]#1
tt.func public @both(%x: tensor<128xf32, #warps>, %y: tensor<128xi32, #warps>, %p: !tt.ptr<f32>, %half: f32) -> (f32, i32) {
  %0 = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tt.reduce.return %s : f32
  }) : (tensor<128xf32, #warps>) -> f32
  %1 = arith.mulf %0, %half : f32
  tt.store %p, %half : !tt.ptr<f32>
  %2 = "tt.reduce"(%y) <{axis = 0 : i32}> ({
  ^bb0(%c: i32, %d: i32):
    %m = arith.maxsi %c, %d : i32
    tt.reduce.return %m : i32
  }) : (tensor<128xi32, #warps>) -> i32
  tt.return %1, %2 : f32, i32
}
// The second takes what the first gives.
// CHECK-LABEL: @in_turn
// CHECK: "tt.reduce"(%x)
// CHECK: "tt.reduce"(%{{[0-9a-z_]+}})
tt.func public @in_turn(%x: tensor<128xf32, #warps>) -> f32 {
  %0 = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tt.reduce.return %s : f32
  }) : (tensor<128xf32, #warps>) -> f32
  %1 = tt.splat %0 : f32 -> tensor<128xf32, #warps>
  %2 = arith.subf %x, %1 : tensor<128xf32, #warps>
  %3 = "tt.reduce"(%2) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tt.reduce.return %s : f32
  }) : (tensor<128xf32, #warps>) -> f32
  tt.return %3 : f32
}
// What is stored of the first is stored before the second.
// CHECK-LABEL: @stored_between
// CHECK: "tt.reduce"(%x)
// CHECK: tt.store
// CHECK: "tt.reduce"(%y)
tt.func public @stored_between(%x: tensor<128xf32, #warps>, %y: tensor<128xf32, #warps>, %p: !tt.ptr<f32>) -> f32 {
  %0 = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tt.reduce.return %s : f32
  }) : (tensor<128xf32, #warps>) -> f32
  tt.store %p, %0 : !tt.ptr<f32>
  %1 = "tt.reduce"(%y) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tt.reduce.return %s : f32
  }) : (tensor<128xf32, #warps>) -> f32
  tt.return %1 : f32
}
// A warp has whole rows: nothing crosses warps.
// CHECK-LABEL: @own_rows
// CHECK: "tt.reduce"(%x)
// CHECK: "tt.reduce"(%y)
tt.func public @own_rows(%x: tensor<4x128xf32, #one>, %y: tensor<4x128xf32, #one>) -> (tensor<4xf32, #ttg.slice<{dim = 1, parent = #one}>>, tensor<4xf32, #ttg.slice<{dim = 1, parent = #one}>>) {
  %0 = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tt.reduce.return %s : f32
  }) : (tensor<4x128xf32, #one>) -> tensor<4xf32, #ttg.slice<{dim = 1, parent = #one}>>
  %1 = "tt.reduce"(%y) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tt.reduce.return %s : f32
  }) : (tensor<4x128xf32, #one>) -> tensor<4xf32, #ttg.slice<{dim = 1, parent = #one}>>
  tt.return %0, %1 : tensor<4xf32, #ttg.slice<{dim = 1, parent = #one}>>, tensor<4xf32, #ttg.slice<{dim = 1, parent = #one}>>
}
}
