// RUN: mltriton opt %s -p "assign-layouts,cse,assign-lanes,cse" | filecheck %s
// The matrix engine takes rows 2 apart after each other where a transposing load brings words of two rows of its left
// operand, in a loop; the result is stored in the natural order again.
// CHECK-DAG: #[[ORDERED:.*]] = #ttig.dpas<{{.*}} repCluster = [4, 4], rowBases = [2, 1, 4]}>
// CHECK-DAG: #[[PLAIN:.*]] = #ttig.dpas<{{.*}} opsPerChan = 2, {{.*}} repCluster = [4, 4]}>
// CHECK-DAG: #[[BYTES:.*]] = #ttig.dpas<{{.*}} opsPerChan = 4, {{.*}} repCluster = [4, 4]}>
// CHECK-DAG: #[[DOT0:.*]] = #ttg.dot_op<{opIdx = 0, parent = #[[ORDERED]]}>
// CHECK-DAG: #[[DOTB:.*]] = #ttg.dot_op<{opIdx = 0, parent = #[[BYTES]]}>
// CHECK-DAG: #[[HALVES:.*]] = #ttig.subgroup_2d_block<{{.*}} instrShape = [16, 16], {{.*}} kWidth = 2, {{.*}} packedRows = 2}>
// CHECK-DAG: #[[WIDE:.*]] = #ttig.subgroup_2d_block<{{.*}} instrShape = [32, 32], {{.*}} kWidth = 1, {{.*}} packedRows = 4}>
module attributes {"ttg.num-warps" = 32 : i32, ttg.target = "xe:pvc"} {

// CHECK-LABEL: @product
// CHECK: ttg.convert_layout {{.*}} : tensor<256x32xf16, #[[HALVES]]> -> tensor<256x32xf16, #[[DOT0]]>
// CHECK: tt.dot {{.*}} -> tensor<256x256xf32, #[[ORDERED]]>
// CHECK: ttg.convert_layout {{.*}} : tensor<256x256xf32, #[[ORDERED]]> -> tensor<256x256xf32, #block{{.*}}>
tt.func @product(%a: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %c: !tt.ptr<f32>, %n: i64 {tt.divisibility = 16 : i32}, %i: i32, %end: i32, %step: i32) {
  %one = arith.constant 1 : i64
  %b = arith.constant dense<1.0> : tensor<32x256xf16>
  %zero = arith.constant dense<0.0> : tensor<256x256xf32>
  %sum = scf.for %k = %i to %end step %step iter_args(%total = %zero) -> (tensor<256x256xf32>) : i32 {
    %pa = tt.make_tensor_ptr %a, [%n, %n], [%one, %n], [%i, %k] {order = array<i32: 0, 1>} : <tensor<256x32xf16>>
    %x = tt.load %pa : !tt.ptr<tensor<256x32xf16>>
    %r = tt.dot %x, %b, %total : tensor<256x32xf16> * tensor<32x256xf16> -> tensor<256x256xf32>
    scf.yield %r : tensor<256x256xf32>
  }
  %pc = tt.make_tensor_ptr %c, [%n, %n], [%n, %one], [%i, %i] {order = array<i32: 1, 0>} : <tensor<256x256xf32>>
  tt.store %pc, %sum : !tt.ptr<tensor<256x256xf32>>
  tt.return
}

// Bytes come in the natural order as well as in any other: a word has four rows, a wide block all of their columns.
// CHECK-LABEL: @bytes
// CHECK: ttg.convert_layout {{.*}} : tensor<256x32xi8, #[[WIDE]]> -> tensor<256x32xi8, #[[DOTB]]>
tt.func @bytes(%a: !tt.ptr<i8> {tt.divisibility = 16 : i32}, %c: !tt.ptr<i32>, %n: i64 {tt.divisibility = 16 : i32}, %i: i32, %end: i32, %step: i32) {
  %one = arith.constant 1 : i64
  %b = arith.constant dense<1> : tensor<32x256xi8>
  %zero = arith.constant dense<0> : tensor<256x256xi32>
  %sum = scf.for %k = %i to %end step %step iter_args(%total = %zero) -> (tensor<256x256xi32>) : i32 {
    %pa = tt.make_tensor_ptr %a, [%n, %n], [%one, %n], [%i, %k] {order = array<i32: 0, 1>} : <tensor<256x32xi8>>
    %x = tt.load %pa : !tt.ptr<tensor<256x32xi8>>
    %r = tt.dot %x, %b, %total : tensor<256x32xi8> * tensor<32x256xi8> -> tensor<256x256xi32>
    scf.yield %r : tensor<256x256xi32>
  }
  %pc = tt.make_tensor_ptr %c, [%n, %n], [%n, %one], [%i, %i] {order = array<i32: 1, 0>} : <tensor<256x256xi32>>
  tt.store %pc, %sum : !tt.ptr<tensor<256x256xi32>>
  tt.return
}

// A result that another dot takes keeps the natural order, and so does that of a dot outside of loops.
// CHECK-LABEL: @chain
// CHECK: tt.dot {{.*}} -> tensor<256x256xf32, #[[PLAIN]]>
// CHECK: tt.dot {{.*}} -> tensor<256x256xf32, #[[PLAIN]]>
tt.func @chain(%a: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %c: !tt.ptr<f32>, %n: i64 {tt.divisibility = 16 : i32}, %i: i32, %end: i32, %step: i32) {
  %one = arith.constant 1 : i64
  %b = arith.constant dense<1.0> : tensor<32x256xf16>
  %zero = arith.constant dense<0.0> : tensor<256x256xf32>
  %sum = scf.for %k = %i to %end step %step iter_args(%total = %zero) -> (tensor<256x256xf32>) : i32 {
    %pa = tt.make_tensor_ptr %a, [%n, %n], [%one, %n], [%i, %k] {order = array<i32: 0, 1>} : <tensor<256x32xf16>>
    %x = tt.load %pa : !tt.ptr<tensor<256x32xf16>>
    %r = tt.dot %x, %b, %total : tensor<256x32xf16> * tensor<32x256xf16> -> tensor<256x256xf32>
    scf.yield %r : tensor<256x256xf32>
  }
  %d = arith.constant dense<1.0> : tensor<256x256xf16>
  %h = arith.truncf %sum : tensor<256x256xf32> to tensor<256x256xf16>
  %s = tt.dot %h, %d, %zero : tensor<256x256xf16> * tensor<256x256xf16> -> tensor<256x256xf32>
  %pc = tt.make_tensor_ptr %c, [%n, %n], [%n, %one], [%i, %i] {order = array<i32: 1, 0>} : <tensor<256x256xf32>>
  tt.store %pc, %s : !tt.ptr<tensor<256x256xf32>>
  tt.return
}

// CHECK-LABEL: @once
// CHECK: tt.dot {{.*}} -> tensor<256x256xf32, #[[PLAIN]]>
tt.func @once(%a: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %c: !tt.ptr<f32>, %n: i64 {tt.divisibility = 16 : i32}, %i: i32) {
  %one = arith.constant 1 : i64
  %b = arith.constant dense<1.0> : tensor<32x256xf16>
  %zero = arith.constant dense<0.0> : tensor<256x256xf32>
  %pa = tt.make_tensor_ptr %a, [%n, %n], [%one, %n], [%i, %i] {order = array<i32: 0, 1>} : <tensor<256x32xf16>>
  %x = tt.load %pa : !tt.ptr<tensor<256x32xf16>>
  %r = tt.dot %x, %b, %zero : tensor<256x32xf16> * tensor<32x256xf16> -> tensor<256x256xf32>
  %pc = tt.make_tensor_ptr %c, [%n, %n], [%n, %one], [%i, %i] {order = array<i32: 1, 0>} : <tensor<256x256xf32>>
  tt.store %pc, %r : !tt.ptr<tensor<256x256xf32>>
  tt.return
}
}
