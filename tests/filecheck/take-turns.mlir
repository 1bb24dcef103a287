// RUN: mltriton opt %s -p "take-turns" | filecheck %s
// What depends on the program's number along x is done in a loop over the numbers from its own on; what follows from the
// arguments, and the number along y, stays in front. The product's sums leave no room for a second program.

// CHECK: "ttg.takes-turns" = 1 : i32
// CHECK-LABEL: @product
// CHECK: %da = ttng.tensor_map
// CHECK: %y = tt.get_program_id y
// CHECK-NEXT: %[[PROGRAMS:.*]] = ttng.grid_size
// CHECK-NEXT: %[[FIRST:.*]] = tt.get_program_id x
// CHECK-NEXT: %[[STEP:.*]] = tt.get_num_programs x
// CHECK-NEXT: %[[COUNT:.*]] = ttng.grid_size
// CHECK-NEXT: scf.for %[[TURN:.*]] = %[[FIRST]] to %[[COUNT]] step %[[STEP]]
// CHECK-NOT: tt.get_
// CHECK: %i = arith.remsi %[[TURN]], %[[PROGRAMS]]
// CHECK: %sum = scf.for
// CHECK: tt.descriptor_store %dc[%i, %y], %sum
// CHECK-NEXT: }
// CHECK-NEXT: tt.return
module attributes {"ttg.num-warps" = 8 : i32, "ttg.num-stages" = 3 : i32, ttg.target = "cuda:90", "ttg.specialize-warps" = "auto"} {
tt.func public @product(%a: !tt.ptr<f16>, %b: !tt.ptr<f16>, %c: !tt.ptr<f32>, %n: i64, %steps: i32) {
  %cst = arith.constant dense<0.000000e+00> : tensor<128x256xf32>
  %one = arith.constant 1 : i64
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %da = ttng.tensor_map %a, [%n, %n], [%n, %one] : <f16>, <tensor<128x64xf16>>
  %db = ttng.tensor_map %b, [%n, %n], [%n, %one] : <f16>, <tensor<64x256xf16>>
  %dc = ttng.tensor_map %c, [%n, %n], [%n, %one] : <f32>, <tensor<128x256xf32>>
  %y = tt.get_program_id y : i32
  %x = tt.get_program_id x : i32
  %count = tt.get_num_programs x : i32
  %i = arith.remsi %x, %count : i32
  %sum = scf.for %k = %c0 to %steps step %c64 iter_args(%acc = %cst) -> (tensor<128x256xf32>) : i32 {
    %p = tt.descriptor_load %da[%i, %k] : !tt.tensordesc<tensor<128x64xf16>> -> tensor<128x64xf16>
    %q = tt.descriptor_load %db[%k, %y] : !tt.tensordesc<tensor<64x256xf16>> -> tensor<64x256xf16>
    %z = tt.dot %p, %q, %acc : tensor<128x64xf16> * tensor<64x256xf16> -> tensor<128x256xf32>
    scf.yield %z : tensor<128x256xf32>
  }
  tt.descriptor_store %dc[%i, %y], %sum : !tt.tensordesc<tensor<128x256xf32>>, tensor<128x256xf32>
  tt.return
}
}
