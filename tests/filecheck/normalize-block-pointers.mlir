// RUN: mltriton opt %s -p normalize-block-pointers,canonicalize | filecheck %s
// The loop carries the offset that changes; the block pointer is made right before the load.

// CHECK-LABEL: @columns
// CHECK: scf.for {{.*}} iter_args(%[[O:.*]] = %c0) -> (i32)
// CHECK-NEXT: %[[P:.*]] = tt.make_tensor_ptr %p, [%n, %n], [%n, %c1_i64], [%row, %[[O]]]
// CHECK-NEXT: tt.load %[[P]]
// CHECK: %[[S:.*]] = arith.addi %[[O]], %c16
// CHECK: scf.yield %[[S]]
// CHECK: tt.make_tensor_ptr
// CHECK-NEXT: tt.load
// CHECK: tt.store
tt.func @columns(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %rows: i32, %row: i32, %steps: i32) {
  %n = arith.extsi %rows : i32 to i64
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c16 = arith.constant 16 : i32
  %c1_i64 = arith.constant 1 : i64
  %x = tt.make_tensor_ptr %p, [%n, %n], [%n, %c1_i64], [%row, %c0] {order = array<i32: 1, 0>} : <tensor<8x16xf32>>
  %y = tt.make_tensor_ptr %q, [%n, %n], [%n, %c1_i64], [%row, %c0] {order = array<i32: 1, 0>} : <tensor<8x16xf32>>
  %r = scf.for %i = %c0 to %steps step %c1 iter_args(%at = %x) -> (!tt.ptr<tensor<8x16xf32>>) : i32 {
    %v = tt.load %at : !tt.ptr<tensor<8x16xf32>>
    tt.store %y, %v : !tt.ptr<tensor<8x16xf32>>
    %next = tt.advance %at, [%c0, %c16] : <tensor<8x16xf32>>
    scf.yield %next : !tt.ptr<tensor<8x16xf32>>
  }
  %last = tt.load %r : !tt.ptr<tensor<8x16xf32>>
  tt.store %y, %last : !tt.ptr<tensor<8x16xf32>>
  tt.return
}

// A size that may exceed i32: offsets along it are i64, and the block pointer begins at the offset.

// CHECK-LABEL: @wide
// CHECK: scf.for {{.*}} iter_args(%[[O:.*]] = %c0_i64) -> (i64)
// CHECK: %[[S:.*]] = arith.maxsi %[[O]], %c0_i64
// CHECK-NEXT: %[[B:.*]] = tt.addptr %p, %[[S]]
// CHECK-NEXT: %[[N:.*]] = arith.subi %n, %[[S]]
// CHECK-NEXT: %[[D:.*]] = arith.subi %[[O]], %[[S]]
// CHECK-NEXT: %[[T:.*]] = arith.trunci %[[D]]
// CHECK-NEXT: tt.make_tensor_ptr %[[B]], [%[[N]]], [%c1_i64], [%[[T]]]
// CHECK: arith.addi %[[O]], %{{.*}} : i64
tt.func @wide(%p: !tt.ptr<f32>, %n: i64, %steps: i32, %move: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c1_i64 = arith.constant 1 : i64
  %x = tt.make_tensor_ptr %p, [%n], [%c1_i64], [%c0] {order = array<i32: 0>} : <tensor<16xf32>>
  %r = scf.for %i = %c0 to %steps step %c1 iter_args(%at = %x) -> (!tt.ptr<tensor<16xf32>>) : i32 {
    %v = tt.load %at : !tt.ptr<tensor<16xf32>>
    tt.store %at, %v : !tt.ptr<tensor<16xf32>>
    %next = tt.advance %at, [%move] : <tensor<16xf32>>
    scf.yield %next : !tt.ptr<tensor<16xf32>>
  }
  tt.return
}

// Of two dimensions the columns may be that many; the rows keep their offset.

// CHECK-LABEL: @wide_rows
// CHECK: scf.for {{.*}} iter_args(%[[R:.*]] = %c0, %[[O:.*]] = %c0_i64) -> (i32, i64)
// CHECK: %[[S:.*]] = arith.maxsi %[[O]], %c0_i64
// CHECK-NEXT: %[[B:.*]] = tt.addptr %p, %[[S]]
// CHECK-NEXT: %[[N:.*]] = arith.subi %n, %[[S]]
// CHECK-NEXT: %[[D:.*]] = arith.subi %[[O]], %[[S]]
// CHECK-NEXT: %[[T:.*]] = arith.trunci %[[D]]
// CHECK-NEXT: tt.make_tensor_ptr %[[B]], [%c8_i64, %[[N]]], [%n, %c1_i64], [%[[R]], %[[T]]]
tt.func @wide_rows(%p: !tt.ptr<f32>, %n: i64, %steps: i32, %move: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c1_i64 = arith.constant 1 : i64
  %c8_i64 = arith.constant 8 : i64
  %x = tt.make_tensor_ptr %p, [%c8_i64, %n], [%n, %c1_i64], [%c0, %c0] {order = array<i32: 1, 0>} : <tensor<8x16xf32>>
  %r = scf.for %i = %c0 to %steps step %c1 iter_args(%at = %x) -> (!tt.ptr<tensor<8x16xf32>>) : i32 {
    %v = tt.load %at : !tt.ptr<tensor<8x16xf32>>
    tt.store %at, %v : !tt.ptr<tensor<8x16xf32>>
    %next = tt.advance %at, [%c1, %move] : <tensor<8x16xf32>>
    scf.yield %next : !tt.ptr<tensor<8x16xf32>>
  }
  tt.return
}
