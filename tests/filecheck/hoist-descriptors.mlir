// RUN: mltriton opt %s -p "hoist-descriptors,canonicalize,cse" | filecheck %s
// What the launch can describe goes through a map at the beginning of the function; all else stays.

module attributes {ttg.target = "cuda:90", "ttg.tensor-maps" = "all"} {

// CHECK: tt.func public @copy
// CHECK: %[[X:.*]] = ttng.tensor_map %x, [%{{.*}}, %{{.*}}], [%s, %{{.*}}] : <f16>, <tensor<64x64xf16>>
// CHECK: %[[Y:.*]] = ttng.tensor_map %y
// CHECK: %[[V:.*]] = tt.descriptor_load %[[X]][%i, %j]
// CHECK: tt.descriptor_store %[[Y]][%i, %j], %[[V]]
// CHECK-NOT: tt.make_tensor_descriptor
tt.func public @copy(%x: !tt.ptr<f16>, %y: !tt.ptr<f16>, %m: i32, %n: i32, %s: i64, %i: i32, %j: i32 {tt.divisibility = 16 : i32}) {
  %one = arith.constant 1 : i64
  %dx = tt.make_tensor_descriptor %x, [%m, %n], [%s, %one] : <f16>, <tensor<64x64xf16>>
  %dy = tt.make_tensor_descriptor %y, [%m, %n], [%s, %one] : <f16>, <tensor<64x64xf16>>
  %v = tt.descriptor_load %dx[%i, %j] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>
  tt.descriptor_store %dy[%i, %j], %v : !tt.tensordesc<tensor<64x64xf16>>, tensor<64x64xf16>
  tt.return
}

// What moves the base from program to program is a dimension of its own; a column-major matrix is loaded turned.
// CHECK: tt.func public @batch
// CHECK-DAG: %[[ANY:.*]] = arith.constant 2147483648
// CHECK-DAG: %[[A:.*]] = ttng.tensor_map %a, [%[[ANY]], %[[M:.*]], %[[N:.*]]], [%{{.*}}, %[[N]], %{{.*}}] : <f16>, <tensor<1x64x64xf16>>
// CHECK-DAG: %[[B:.*]] = ttng.tensor_map %b, [%[[N]], %[[M]]], [%[[M]], %{{.*}}] : <f16>, <tensor<64x64xf16>>
// CHECK: %[[Z:.*]] = tt.get_program_id z
// CHECK: tt.descriptor_load %[[A]][%[[Z]], %i, %j] : !tt.tensordesc<tensor<1x64x64xf16>> -> tensor<64x64xf16>
// CHECK: %[[T:.*]] = tt.descriptor_load %[[B]][%j, %i]
// CHECK: tt.trans %[[T]]
tt.func public @batch(%a: !tt.ptr<f16>, %b: !tt.ptr<f16>, %o: !tt.ptr<f16>, %rows: i32, %columns: i32, %i: i32 {tt.divisibility = 16 : i32}, %j: i32 {tt.divisibility = 16 : i32}) {
  %one = arith.constant 1 : i64
  %m = arith.extsi %rows : i32 to i64
  %n = arith.extsi %columns : i32 to i64
  %z = tt.get_program_id z : i32
  %by = arith.extsi %z : i32 to i64
  %each = arith.muli %m, %n : i64
  %shift = arith.muli %by, %each : i64
  %base = tt.addptr %a, %shift : !tt.ptr<f16>, i64
  %p = tt.make_tensor_ptr %base, [%m, %n], [%n, %one], [%i, %j] {order = array<i32: 1, 0>} : <tensor<64x64xf16>>
  %q = tt.make_tensor_ptr %b, [%m, %n], [%one, %m], [%i, %j] {order = array<i32: 0, 1>} : <tensor<64x64xf16>>
  %x = tt.load %p {boundaryCheck = array<i32: 0, 1>} : !tt.ptr<tensor<64x64xf16>>
  %y = tt.load %q {boundaryCheck = array<i32: 0, 1>} : !tt.ptr<tensor<64x64xf16>>
  %s = arith.addf %x, %y : tensor<64x64xf16>
  %places = tt.splat %o : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
  tt.store %places, %s : tensor<64x64x!tt.ptr<f16>>
  tt.return
}

// What a loop loads through one parameter and stores through another is copied where these are different arrays, which
// the launch sees; what it loads and stores through one is not.
// CHECK: tt.func public @turns
// CHECK: ttng.tensor_map %x, [{{.*}}] apart [%y] : <f16>
// CHECK: ttng.tensor_map %y, [{{.*}}] apart [%x, %z] : <f16>
// CHECK-NOT: ttng.tensor_map
// CHECK: scf.for
tt.func public @turns(%x: !tt.ptr<f16>, %y: !tt.ptr<f16>, %z: !tt.ptr<f16>, %m: i32, %n: i32, %s: i64, %turns: i32) {
  %one = arith.constant 1 : i64
  %zero = arith.constant 0 : i32
  %next = arith.constant 1 : i32
  %rows = arith.constant 64 : i32
  %dx = tt.make_tensor_descriptor %x, [%m, %n], [%s, %one] : <f16>, <tensor<64x64xf16>>
  %dy = tt.make_tensor_descriptor %y, [%m, %n], [%s, %one] : <f16>, <tensor<64x64xf16>>
  %dz = tt.make_tensor_descriptor %z, [%m, %n], [%s, %one] : <f16>, <tensor<64x64xf16>>
  scf.for %turn = %zero to %turns step %next : i32 {
    %i = arith.muli %turn, %rows : i32
    %v = tt.descriptor_load %dx[%i, %zero] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>
    tt.descriptor_store %dy[%i, %zero], %v : !tt.tensordesc<tensor<64x64xf16>>, tensor<64x64xf16>
    %w = tt.descriptor_load %dz[%i, %zero] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>
    tt.descriptor_store %dz[%zero, %i], %w : !tt.tensordesc<tensor<64x64xf16>>, tensor<64x64xf16>
  }
  tt.return
}

// A size that is read from memory, elements outside that are NaN, a small block, a matrix that is also stored; in the last
// function columns that begin anywhere.
// CHECK: tt.func public @stays
// CHECK-NOT: ttng.tensor_map
tt.func public @stays(%x: !tt.ptr<f16>, %sizes: !tt.ptr<i32>, %m: i32, %s: i64, %i: i32 {tt.divisibility = 16 : i32}) {
  %one = arith.constant 1 : i64
  %n = tt.load %sizes : !tt.ptr<i32>
  %read = tt.make_tensor_descriptor %x, [%n, %n], [%s, %one] : <f16>, <tensor<64x64xf16>>
  %nan = tt.make_tensor_descriptor %x, [%m, %m], [%s, %one] {padding = 2 : i32} : <f16>, <tensor<64x64xf16>>
  %small = tt.make_tensor_descriptor %x, [%m, %m], [%s, %one] : <f16>, <tensor<8x64xf16>>
  %both = tt.make_tensor_descriptor %x, [%m, %m], [%s, %one] : <f16>, <tensor<64x64xf16>>
  %a = tt.descriptor_load %read[%i, %i] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>
  tt.descriptor_store %both[%i, %i], %a : !tt.tensordesc<tensor<64x64xf16>>, tensor<64x64xf16>
  %b = tt.descriptor_load %nan[%i, %i] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>
  %c = tt.descriptor_load %small[%i, %i] : !tt.tensordesc<tensor<8x64xf16>> -> tensor<8x64xf16>
  %d = tt.descriptor_load %both[%i, %i] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>
  tt.descriptor_store %read[%i, %i], %b : !tt.tensordesc<tensor<64x64xf16>>, tensor<64x64xf16>
  tt.descriptor_store %read[%i, %i], %d : !tt.tensordesc<tensor<64x64xf16>>, tensor<64x64xf16>
  tt.descriptor_store %small[%i, %i], %c : !tt.tensordesc<tensor<8x64xf16>>, tensor<8x64xf16>
  tt.return
}
// CHECK: tt.func public @anywhere
// CHECK-NOT: ttng.tensor_map
tt.func public @anywhere(%x: !tt.ptr<f16>, %y: !tt.ptr<f16>, %m: i32, %s: i64, %i: i32, %j: i32) {
  %one = arith.constant 1 : i64
  %dx = tt.make_tensor_descriptor %x, [%m, %m], [%s, %one] : <f16>, <tensor<64x64xf16>>
  %dy = tt.make_tensor_descriptor %y, [%m, %m], [%s, %one] : <f16>, <tensor<64x64xf16>>
  %v = tt.descriptor_load %dx[%i, %j] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>
  tt.descriptor_store %dy[%i, %j], %v : !tt.tensordesc<tensor<64x64xf16>>, tensor<64x64xf16>
  tt.return
}

// What is added to is described, where the program does not store there, too: the engine would not wait.
// CHECK: tt.func public @added
// CHECK: %[[Y:.*]] = ttng.tensor_map %y, [{{.*}}] apart [%z] : <f32>
// CHECK-NOT: ttng.tensor_map
// CHECK: tt.descriptor_reduce add, %[[Y]][%i, %i], %v
// CHECK: tt.descriptor_store %dz[%i, %i], %v
// CHECK: tt.descriptor_reduce add, %dz[%i, %i], %v
tt.func public @added(%y: !tt.ptr<f32>, %z: !tt.ptr<f32>, %m: i32, %s: i64, %i: i32 {tt.divisibility = 16 : i32}, %v: tensor<64x64xf32>) {
  %one = arith.constant 1 : i64
  %dy = tt.make_tensor_descriptor %y, [%m, %m], [%s, %one] : <f32>, <tensor<64x64xf32>>
  %dz = tt.make_tensor_descriptor %z, [%m, %m], [%s, %one] : <f32>, <tensor<64x64xf32>>
  tt.descriptor_reduce add, %dy[%i, %i], %v : !tt.tensordesc<tensor<64x64xf32>>, tensor<64x64xf32>
  tt.descriptor_store %dz[%i, %i], %v : !tt.tensordesc<tensor<64x64xf32>>, tensor<64x64xf32>
  tt.descriptor_reduce add, %dz[%i, %i], %v : !tt.tensordesc<tensor<64x64xf32>>, tensor<64x64xf32>
  tt.return
}
}
