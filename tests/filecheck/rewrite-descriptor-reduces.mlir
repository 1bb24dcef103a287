// RUN: mltriton opt %s -p "rewrite-descriptor-reduces" | filecheck %s
// What a descriptor's block is combined with goes to each element by a relaxed atomic update, where it lies inside.

// CHECK-LABEL: @rows
// CHECK: %[[PLACES:.*]] = tt.addptr %{{.*}}, %{{.*}} : tensor<8x16x!tt.ptr<f32>>, tensor<8x16xi64>
// CHECK: tt.atomic_rmw fadd, relaxed, gpu, %[[PLACES]], %x, %{{.*}} : (tensor<8x16x!tt.ptr<f32>>, tensor<8x16xf32>, tensor<8x16xi1>) -> tensor<8x16xf32>
// CHECK: tt.atomic_rmw umin, relaxed, gpu
// CHECK-NOT: tt.descriptor_reduce
module {
tt.func public @rows(%a: !tt.ptr<f32>, %b: !tt.ptr<i32>, %n: i32, %stride: i64, %i: i32, %x: tensor<8x16xf32>, %y: tensor<8x16xi32>) {
  %one = arith.constant 1 : i64
  %da = tt.make_tensor_descriptor %a, [%n, %n], [%stride, %one] : <f32>, <tensor<8x16xf32>>
  %db = tt.make_tensor_descriptor %b, [%n, %n], [%stride, %one] : <i32>, <tensor<8x16xi32>>
  tt.descriptor_reduce add, %da[%i, %i], %x : !tt.tensordesc<tensor<8x16xf32>>, tensor<8x16xf32>
  tt.descriptor_reduce umin, %db[%i, %i], %y : !tt.tensordesc<tensor<8x16xi32>>, tensor<8x16xi32>
  tt.return
}
}
