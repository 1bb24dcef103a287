// RUN: mltriton opt %s -p dce | filecheck %s
// The loop carries two values; one only feeds itself.

// CHECK-LABEL: @carried
// CHECK-NOT: arith.muli
// CHECK: scf.for {{.*}} iter_args(%[[SUM:.*]] = %c0) -> (i32)
// CHECK-NEXT: arith.addi %[[SUM]]
// CHECK-NEXT: scf.yield
tt.func @carried(%p: !tt.ptr<i32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%product = %c1, %sum = %c0) -> (i32, i32) : i32 {
    %a = arith.muli %product, %i : i32
    %b = arith.addi %sum, %i : i32
    scf.yield %a, %b : i32, i32
  }
  tt.store %p, %r#1 : !tt.ptr<i32>
  tt.return
}
