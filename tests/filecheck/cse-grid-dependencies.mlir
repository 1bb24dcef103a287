// RUN: mltriton opt %s -p cse,dce | filecheck %s
// What an earlier launch may still write is read behind the wait for it, and neither the wait nor the signal is dropped.

// CHECK-LABEL: @again
// CHECK-NEXT: %[[A:.*]] = tt.load %p
// CHECK-NEXT: ttng.grid_dependency_wait
// CHECK-NEXT: %[[B:.*]] = tt.load %p
// CHECK-NEXT: %[[C:.*]] = arith.addi %[[A]], %[[B]]
// CHECK-NEXT: ttng.launch_dependents
// CHECK-NEXT: tt.return %[[C]]
tt.func @again(%p: !tt.ptr<i32>) -> i32 {
  %0 = tt.load %p : !tt.ptr<i32>
  ttng.grid_dependency_wait
  %1 = tt.load %p : !tt.ptr<i32>
  %2 = arith.addi %0, %1 : i32
  ttng.launch_dependents
  tt.return %2 : i32
}
