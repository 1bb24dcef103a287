// RUN: mltriton opt %s -p raise-block-pointers,canonicalize,cse,licm,dce | filecheck %s

module attributes {ttg.target = "xe:pvc"} {

// The product of Triton's tutorial: rows wrap around, but what they add up to is not stored; columns of the left operand
// are masked by how many are left. Sizes and strides are arguments.
// CHECK-LABEL: @product
// CHECK-DAG: %[[M:.*]] = arith.extsi %m : i32 to i64
// CHECK-DAG: %[[K:.*]] = arith.extsi %k : i32 to i64
// CHECK-DAG: %[[S:.*]] = arith.extsi %s : i32 to i64
// CHECK: scf.for %[[I:.*]] = {{.*}} iter_args(%{{[^,]*}} = %{{[^,]*}}) -> (tensor<16x32xf32>)
// CHECK: %[[X:.*]] = arith.muli %[[I]], %{{.*}} : i32
// CHECK: %[[P:.*]] = tt.make_tensor_ptr %x, [%[[M]], %[[K]]], [%[[S]], %{{.*}}], [%{{.*}}, %[[X]]] {order = array<i32: 1, 0>} : <tensor<16x32xf16>>
// CHECK: tt.load %[[P]] {boundaryCheck = array<i32: 0, 1>} : !tt.ptr<tensor<16x32xf16>>
// CHECK: tt.store %{{.*}} {boundaryCheck = array<i32: 0, 1>} : !tt.ptr<tensor<16x32xf32>>
tt.func @product(%x: !tt.ptr<f16>, %z: !tt.ptr<f32>, %m: i32, %k: i32, %s: i32, %turns: i32, %b: tensor<32x32xf16>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c16 = arith.constant 16 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant dense<0.0> : tensor<16x32xf32>
  %step = arith.constant dense<32> : tensor<16x32xi32>
  %id = tt.get_program_id x : i32
  %first = arith.muli %id, %c16 : i32
  %starts = tt.splat %first : i32 -> tensor<16xi32>
  %places = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
  %rows = arith.addi %starts, %places : tensor<16xi32>
  %ms = tt.splat %m : i32 -> tensor<16xi32>
  %wrapped = arith.remsi %rows, %ms : tensor<16xi32>
  %columns = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
  %i = tt.expand_dims %wrapped {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %ss = tt.splat %s : i32 -> tensor<16x1xi32>
  %down = arith.muli %i, %ss : tensor<16x1xi32>
  %j = tt.expand_dims %columns {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %down2 = tt.broadcast %down : tensor<16x1xi32> -> tensor<16x32xi32>
  %j2 = tt.broadcast %j : tensor<1x32xi32> -> tensor<16x32xi32>
  %offsets = arith.addi %down2, %j2 : tensor<16x32xi32>
  %base = tt.splat %x : !tt.ptr<f16> -> tensor<16x32x!tt.ptr<f16>>
  %p = tt.addptr %base, %offsets : tensor<16x32x!tt.ptr<f16>>, tensor<16x32xi32>
  %sum, %after = scf.for %t = %c0 to %turns step %c1 iter_args(%acc = %zero, %q = %p) -> (tensor<16x32xf32>, tensor<16x32x!tt.ptr<f16>>) : i32 {
    %done = arith.muli %t, %c32 : i32
    %left = arith.subi %k, %done : i32
    %lefts = tt.splat %left : i32 -> tensor<1x32xi32>
    %inside = arith.cmpi slt, %j, %lefts : tensor<1x32xi32>
    %mask = tt.broadcast %inside : tensor<1x32xi1> -> tensor<16x32xi1>
    %a = tt.load %q, %mask : tensor<16x32x!tt.ptr<f16>>
    %d = tt.dot %a, %b, %acc : tensor<16x32xf16> * tensor<32x32xf16> -> tensor<16x32xf32>
    %r = tt.addptr %q, %step : tensor<16x32x!tt.ptr<f16>>, tensor<16x32xi32>
    scf.yield %d, %r : tensor<16x32xf32>, tensor<16x32x!tt.ptr<f16>>
  }
  %i3 = tt.expand_dims %rows {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %m3 = tt.splat %m : i32 -> tensor<16x1xi32>
  %kept = arith.cmpi slt, %i3, %m3 : tensor<16x1xi32>
  %kept2 = tt.broadcast %kept : tensor<16x1xi1> -> tensor<16x32xi1>
  %c32s = arith.constant dense<32> : tensor<16x1xi32>
  %down3 = arith.muli %i3, %c32s : tensor<16x1xi32>
  %down4 = tt.broadcast %down3 : tensor<16x1xi32> -> tensor<16x32xi32>
  %offsets3 = arith.addi %down4, %j2 : tensor<16x32xi32>
  %base3 = tt.splat %z : !tt.ptr<f32> -> tensor<16x32x!tt.ptr<f32>>
  %p3 = tt.addptr %base3, %offsets3 : tensor<16x32x!tt.ptr<f32>>, tensor<16x32xi32>
  tt.store %p3, %sum, %kept2 : tensor<16x32x!tt.ptr<f32>>
  tt.return
}

}
