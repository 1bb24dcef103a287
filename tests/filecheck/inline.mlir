// RUN: mltriton opt %s -p inline | filecheck %s
// The private function is inlined and removed.

// CHECK-NOT: private
// CHECK-LABEL: @kernel
// CHECK-NEXT: %[[R:.*]] = arith.muli %x, %x
// CHECK-NEXT: tt.return %[[R]]
tt.func private @square(%a: i32) -> i32 {
  %0 = arith.muli %a, %a : i32
  tt.return %0 : i32
}
tt.func public @kernel(%x: i32) -> i32 {
  %0 = tt.call @square(%x) : (i32) -> i32
  tt.return %0 : i32
}
