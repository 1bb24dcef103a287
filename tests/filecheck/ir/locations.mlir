// RUN: mltriton opt %s --locations | filecheck %s
// Locations are kept through aliases; what has none gets its place in this file.

// CHECK: arith.addi %x, %x : i32 loc([[INLINED:#loc.*]])
// CHECK-NEXT: arith.muli %x, %x : i32 loc([[HERE:#loc.*]])
// CHECK: #loc = loc("kernel.py":3:8)
// CHECK: = loc("kernel.py":9:4)
// CHECK: = loc(callsite(#loc at #loc1))
// CHECK: = loc("{{.*}}locations.mlir":13:4)
module {
  tt.func @k(%x: i32) {
    %0 = arith.addi %x, %x : i32 loc(callsite("kernel.py":3:8 at #caller))
    %1 = arith.muli %x, %x : i32
    tt.return loc(#caller)
  }
}
#caller = loc("kernel.py":9:4)
