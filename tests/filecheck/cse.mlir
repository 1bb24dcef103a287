// RUN: mltriton opt %s -p cse | filecheck %s
// Equal operations become one, operands of commutative ones in any order; a load is read again after a store.

// CHECK-LABEL: @equal
// CHECK: %[[S:.*]] = arith.addi %x, %y
// CHECK-NEXT: %[[P:.*]] = arith.muli %[[S]], %[[S]]
// CHECK-NEXT: %[[A:.*]] = tt.load %p
// CHECK-NEXT: tt.store %p, %[[P]]
// CHECK-NEXT: %[[B:.*]] = tt.load %p
// CHECK-NEXT: arith.addi %[[A]], %[[B]]
tt.func @equal(%p: !tt.ptr<i32>, %x: i32, %y: i32) -> i32 {
  %0 = arith.addi %x, %y : i32
  %1 = arith.addi %y, %x : i32
  %2 = arith.muli %0, %1 : i32
  %3 = tt.load %p : !tt.ptr<i32>
  %4 = tt.load %p : !tt.ptr<i32>
  tt.store %p, %2 : !tt.ptr<i32>
  %5 = tt.load %p : !tt.ptr<i32>
  %6 = arith.addi %4, %5 : i32
  tt.return %6 : i32
}
