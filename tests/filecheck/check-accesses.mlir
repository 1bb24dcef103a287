// RUN: mltriton opt %s -p "check-accesses" | filecheck %s
// Accesses are asserted to lie in the array that their pointer is based on, and masked where they do not. A pointer that was
// read from memory is trusted.

module attributes {"mltriton.level" = "tt", "ttg.num-warps" = 4 : i32, ttg.target = "cpu"} {
  // CHECK: tt.func public @f(%x: !tt.ptr<f32>, %y: !tt.ptr<i64>, %m: tensor<16xi1>,
  // CHECK-SAME: %x.start: !tt.ptr<i8>, %x.bytes: i64, %y.start: !tt.ptr<i8>, %y.bytes: i64)
  tt.func public @f(%x: !tt.ptr<f32>, %y: !tt.ptr<i64>, %m: tensor<16xi1>) {
    %i = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
    %xs = tt.splat %x : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
    %p = tt.addptr %xs, %i : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
    // CHECK: [[INSIDE:%.*]] = arith.cmpi ult, {{.*}} : tensor<16xi64>
    // CHECK: tt.assert [[INSIDE]], "a load outside of x" {of_access = true}
    // CHECK: %v = tt.load %p, [[INSIDE]]
    %v = tt.load %p : tensor<16x!tt.ptr<f32>>
    // CHECK: [[INSIDE:%.*]] = arith.cmpi ult, {{.*}} : tensor<16xi64>
    // CHECK: [[OFF:%.*]] = arith.xori %m,
    // CHECK: [[HOLDS:%.*]] = arith.ori [[OFF]], [[INSIDE]]
    // CHECK: tt.assert [[HOLDS]], "a store outside of x" {of_access = true}
    // CHECK: [[MASK:%.*]] = arith.andi %m, [[INSIDE]]
    // CHECK: tt.store %p, %v, [[MASK]]
    tt.store %p, %v, %m : tensor<16x!tt.ptr<f32>>
    // CHECK: tt.assert {{.*}}, "a load outside of y"
    %number = tt.load %y : !tt.ptr<i64>
    // CHECK: tt.int_to_ptr
    %q = tt.int_to_ptr %number : i64 -> !tt.ptr<f32>
    // CHECK-NOT: tt.assert
    %w = tt.load %q : !tt.ptr<f32>
    tt.return
  }
}
