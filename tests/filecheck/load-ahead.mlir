// RUN: mltriton opt %s -p "assign-layouts,cse,assign-lanes,dce,load-ahead,dce,canonicalize,cse" | filecheck %s
// A loop's block is copied two iterations ahead, and what is outside of its mask chosen after it has arrived; scalars
// are carried. What is found through memory is loaded as before.

// CHECK-LABEL: @rows
// CHECK: %[[BUFFERS:.*]] = ttg.local_alloc : () -> !ttg.memdesc<2x1024xf32, #ttg.shared_memory, mutable>
// CHECK: %[[W0:.*]] = ttg.memdesc_subview %[[BUFFERS]][%c0, %c0]
// CHECK: ttg.async_copy_global_to_local %{{.*}}, %[[W0]] mask
// CHECK: %[[P0:.*]] = tt.load %table, %{{.*}} : !tt.ptr<i32>
// CHECK: %[[S0:.*]] = tt.load %scales, %{{.*}} : !tt.ptr<f32>
// CHECK: ttg.async_commit_group
// CHECK: %[[W1:.*]] = ttg.memdesc_subview %[[BUFFERS]][%c1, %c0]
// CHECK: ttg.async_copy_global_to_local %{{.*}}, %[[W1]] mask
// CHECK: %[[P1:.*]] = tt.load
// CHECK: %[[S1:.*]] = tt.load
// CHECK: ttg.async_commit_group
// CHECK: scf.for {{.*}} iter_args(%{{.*}}, %[[SLOT:.*]] = %c0, %[[P:.*]] = %[[P0]], %{{.*}} = %[[P1]], %[[S:.*]] = %[[S0]], %{{.*}} = %[[S1]])
// CHECK-NEXT: ttg.async_wait {num = 1 : i32, own = true}
// CHECK: %[[WINDOW:.*]] = ttg.memdesc_subview %[[BUFFERS]][%[[SLOT]], %c0]
// CHECK-NEXT: %[[HERE:.*]] = ttg.local_load %[[WINDOW]]
// CHECK: arith.select %{{.*}}, %[[HERE]], %{{.*}}
// CHECK: arith.muli %[[P]],
// CHECK: tt.load %{{.*}} : tensor<1024x!tt.ptr<f32>
// CHECK: ttg.async_copy_global_to_local %{{.*}}, %[[WINDOW]] mask
// CHECK-NOT: ttg.async_copy_global_to_local
// CHECK: arith.mulf %{{.*}}, %[[S]]
// CHECK: ttg.async_wait {own = true}
module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-stages" = 3 : i32, ttg.target = "cuda:90"} {
tt.func public @rows(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %scales: !tt.ptr<f32>, %table: !tt.ptr<i32>, %out: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %rows: i32, %columns: i32 {tt.divisibility = 16 : i32}) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c16 = arith.constant 16 : i32
  %zero = arith.constant 0.000000e+00 : f32
  %least = arith.constant dense<0xFF800000> : tensor<1024xf32>
  %at = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32>
  %ends = tt.splat %columns : i32 -> tensor<1024xi32>
  %inside = arith.cmpi slt, %at, %ends : tensor<1024xi32>
  %total = scf.for %row = %c0 to %rows step %c1 iter_args(%sum = %zero) -> (f32) : i32 {
    %start = arith.muli %row, %columns : i32
    %line = tt.addptr %x, %start : !tt.ptr<f32>, i32
    %lines = tt.splat %line : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
    %there = tt.addptr %lines, %at : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
    %values = tt.load %there, %inside, %least : tensor<1024x!tt.ptr<f32>>
    %entry = tt.addptr %table, %row : !tt.ptr<i32>, i32
    %place = tt.load %entry : !tt.ptr<i32>
    %line_there = arith.muli %place, %c16 : i32
    %other = tt.addptr %x, %line_there : !tt.ptr<f32>, i32
    %others = tt.splat %other : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
    %far = tt.addptr %others, %at : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
    %found = tt.load %far : tensor<1024x!tt.ptr<f32>>
    %scale_at = tt.addptr %scales, %row : !tt.ptr<f32>, i32
    %scale = tt.load %scale_at : !tt.ptr<f32>
    %both = arith.maximumf %values, %found : tensor<1024xf32>
    %most = "tt.reduce"(%both) ({
    ^bb0(%a: f32, %b: f32):
      %m = arith.maximumf %a, %b : f32
      tt.reduce.return %m : f32
    }) {axis = 0 : i32} : (tensor<1024xf32>) -> f32
    %scaled = arith.mulf %most, %scale : f32
    %new = arith.addf %sum, %scaled : f32
    scf.yield %new : f32
  }
  tt.store %out, %total : !tt.ptr<f32>
  tt.return
}
}
