// RUN: mltriton opt %s -p canonicalize | filecheck %s
// A chain of constant sums is one sum, a negated comparison the opposite one; a product by a power of two stays.

// CHECK-LABEL: @forms
// CHECK: arith.addi %x, %c12_i32
// CHECK-NEXT: arith.muli %{{.*}}, %c8
// CHECK-NEXT: %[[C:.*]] = arith.cmpi sge
// CHECK-NEXT: arith.select %[[C]]
// CHECK-NEXT: tt.return
tt.func @forms(%x: i32, %y: i32) -> i32 {
  %c5 = arith.constant 5 : i32
  %c7 = arith.constant 7 : i32
  %c8 = arith.constant 8 : i32
  %true = arith.constant true
  %0 = arith.addi %x, %c5 : i32
  %1 = arith.addi %0, %c7 : i32
  %2 = arith.muli %1, %c8 : i32
  %3 = arith.cmpi slt, %2, %y : i32
  %4 = arith.xori %3, %true : i1
  %5 = scf.if %4 -> (i32) {
    scf.yield %2 : i32
  } else {
    scf.yield %y : i32
  }
  tt.return %5 : i32
}
