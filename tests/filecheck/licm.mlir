// RUN: mltriton opt %s -p licm | filecheck %s
// Pure operations on invariants leave the loop; the load stays.

// CHECK-LABEL: @invariant
// CHECK: arith.muli %n, %n
// CHECK-NEXT: scf.for
// CHECK-NEXT: tt.load
tt.func @invariant(%p: !tt.ptr<i32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    %a = arith.muli %n, %n : i32
    %b = tt.load %p : !tt.ptr<i32>
    %c = arith.addi %a, %b : i32
    tt.store %p, %c : !tt.ptr<i32>
  }
  tt.return
}
