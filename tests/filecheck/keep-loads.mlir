// RUN: mltriton opt %s -p "assign-layouts,cse,assign-lanes,dce,keep-loads,dce,canonicalize,cse" | filecheck %s

// A row is read twice: three blocks of 32 KB have room beside those of another program of 16 warps. Copies of all are on
// their way before the first loop; the second one reads them, and both go on with the rest as they were.

module attributes {"ttg.num-warps" = 16 : i32, "ttg.num-stages" = 1 : i32, ttg.target = "cuda:90"} {
  // CHECK-LABEL: @normalized
  // CHECK: ttg.local_alloc : () -> !ttg.memdesc<3x16384xbf16, #ttg.shared_memory, mutable>
  // CHECK-COUNT-3: ttg.async_copy_global_to_local
  // CHECK: scf.for %{{.*}} = %c0_i32 to %[[MIDDLE:[0-9]+]]
  // CHECK-NEXT: ttg.async_wait {num = 2 : i32, own = true}
  // CHECK-NOT: tt.load
  // CHECK: ttg.local_load
  // CHECK: scf.yield
  // CHECK: ttg.async_wait {own = true}
  // CHECK: scf.for %{{.*}} = %c49152_i32 to %n
  // CHECK: tt.load
  // CHECK: scf.for %{{.*}} = %c0_i32 to %[[MIDDLE]]
  // CHECK-NOT: tt.load
  // CHECK: ttg.local_load
  // CHECK: tt.store
  // CHECK: scf.for %{{.*}} = %c49152_i32 to %n
  // CHECK: tt.load
  tt.func public @normalized(%x: !tt.ptr<bf16> {tt.divisibility = 16 : i32}, %out: !tt.ptr<bf16> {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}) {
    %zero = arith.constant 0.000000e+00 : f32
    %c0_i32 = arith.constant 0 : i32
    %c16384_i32 = arith.constant 16384 : i32
    %range = tt.make_range {end = 16384 : i32, start = 0 : i32} : tensor<16384xi32>
    %xs = tt.splat %x : !tt.ptr<bf16> -> tensor<16384x!tt.ptr<bf16>>
    %outs = tt.splat %out : !tt.ptr<bf16> -> tensor<16384x!tt.ptr<bf16>>
    %ns = tt.splat %n : i32 -> tensor<16384xi32>
    %none = arith.constant dense<0.000000e+00> : tensor<16384xbf16>
    %sum = scf.for %i = %c0_i32 to %n step %c16384_i32 iter_args(%so_far = %zero) -> (f32) : i32 {
      %0 = tt.splat %i : i32 -> tensor<16384xi32>
      %at = arith.addi %0, %range : tensor<16384xi32>
      %mask = arith.cmpi slt, %at, %ns : tensor<16384xi32>
      %p = tt.addptr %xs, %at : tensor<16384x!tt.ptr<bf16>>, tensor<16384xi32>
      %v = tt.load %p, %mask, %none : tensor<16384x!tt.ptr<bf16>>
      %w = arith.extf %v : tensor<16384xbf16> to tensor<16384xf32>
      %part = "tt.reduce"(%w) <{axis = 0 : i32}> ({
      ^bb0(%a: f32, %b: f32):
        %c = arith.addf %a, %b : f32
        tt.reduce.return %c : f32
      }) : (tensor<16384xf32>) -> f32
      %next = arith.addf %so_far, %part : f32
      scf.yield %next : f32
    }
    %sums = tt.splat %sum : f32 -> tensor<16384xf32>
    scf.for %i = %c0_i32 to %n step %c16384_i32 : i32 {
      %0 = tt.splat %i : i32 -> tensor<16384xi32>
      %at = arith.addi %0, %range : tensor<16384xi32>
      %mask = arith.cmpi slt, %at, %ns : tensor<16384xi32>
      %p = tt.addptr %xs, %at : tensor<16384x!tt.ptr<bf16>>, tensor<16384xi32>
      %v = tt.load %p, %mask : tensor<16384x!tt.ptr<bf16>>
      %w = arith.extf %v : tensor<16384xbf16> to tensor<16384xf32>
      %q = arith.divf %w, %sums : tensor<16384xf32>
      %r = arith.truncf %q : tensor<16384xf32> to tensor<16384xbf16>
      %to = tt.addptr %outs, %at : tensor<16384x!tt.ptr<bf16>>, tensor<16384xi32>
      tt.store %to, %r, %mask : tensor<16384x!tt.ptr<bf16>>
    }
    tt.return
  }

  // What the first loop itself changes, and what is at another place, is loaded again.
  // CHECK-LABEL: @changed
  // CHECK-NOT: local_alloc
  // CHECK-COUNT-3: tt.load
  // CHECK: tt.return
  tt.func public @changed(%x: !tt.ptr<bf16> {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}) {
    %c0_i32 = arith.constant 0 : i32
    %c1_i32 = arith.constant 1 : i32
    %c16384_i32 = arith.constant 16384 : i32
    %range = tt.make_range {end = 16384 : i32, start = 0 : i32} : tensor<16384xi32>
    %xs = tt.splat %x : !tt.ptr<bf16> -> tensor<16384x!tt.ptr<bf16>>
    scf.for %i = %c0_i32 to %n step %c16384_i32 : i32 {
      %0 = tt.splat %i : i32 -> tensor<16384xi32>
      %at = arith.addi %0, %range : tensor<16384xi32>
      %p = tt.addptr %xs, %at : tensor<16384x!tt.ptr<bf16>>, tensor<16384xi32>
      %v = tt.load %p : tensor<16384x!tt.ptr<bf16>>
      %w = arith.addf %v, %v : tensor<16384xbf16>
      tt.store %p, %w : tensor<16384x!tt.ptr<bf16>>
    }
    scf.for %i = %c0_i32 to %n step %c16384_i32 : i32 {
      %0 = tt.splat %i : i32 -> tensor<16384xi32>
      %at = arith.addi %0, %range : tensor<16384xi32>
      %p = tt.addptr %xs, %at : tensor<16384x!tt.ptr<bf16>>, tensor<16384xi32>
      %v = tt.load %p : tensor<16384x!tt.ptr<bf16>>
      %far = arith.addi %i, %c1_i32 : i32
      %1 = tt.splat %far : i32 -> tensor<16384xi32>
      %other = arith.addi %1, %range : tensor<16384xi32>
      %q = tt.addptr %xs, %other : tensor<16384x!tt.ptr<bf16>>, tensor<16384xi32>
      %u = tt.load %q : tensor<16384x!tt.ptr<bf16>>
      %w = arith.addf %v, %u : tensor<16384xbf16>
      tt.store %p, %w : tensor<16384x!tt.ptr<bf16>>
    }
    tt.return
  }
}
