// RUN: not mltriton opt %s 2>&1 | filecheck %s
// A mistake in the text is shown with its line and a caret.

// CHECK: errors.mlir:9:23: IRSyntaxError: %y is not defined here
// CHECK-NEXT: 9 |   %0 = arith.addi %x, %y : i32
// CHECK-NEXT: |                       ^
// CHECK-NEXT: found `%y`
tt.func @k(%x: i32) {
  %0 = arith.addi %x, %y : i32
  tt.return
}
