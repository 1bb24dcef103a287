// RUN: mltriton opt %s -p rewrite-tensor-pointers | filecheck %s
// One pointer for each element, and a mask for the checked dimension.

// CHECK-LABEL: @line
// CHECK: %[[I:.*]] = tt.broadcast
// CHECK: arith.cmpi sge, %[[I]]
// CHECK: arith.cmpi slt, %[[I]]
// CHECK: %[[M:.*]] = arith.andi
// CHECK: %[[P:.*]] = tt.addptr {{.*}} : tensor<16x!tt.ptr<f32>>, tensor<16xi64>
// CHECK: tt.load %[[P]], %[[M]]
// CHECK-NOT: tt.make_tensor_ptr
tt.func @line(%p: !tt.ptr<f32>, %n: i64, %stride: i64, %at: i32) -> tensor<16xf32> {
  %x = tt.make_tensor_ptr %p, [%n], [%stride], [%at] {order = array<i32: 0>} : <tensor<16xf32>>
  %v = tt.load %x {boundaryCheck = array<i32: 0>} : !tt.ptr<tensor<16xf32>>
  tt.return %v : tensor<16xf32>
}
