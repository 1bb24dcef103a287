// RUN: mltriton opt %s -p "schedule-loads{ahead=0}" | filecheck %s
// RUN: mltriton opt %s -p "schedule-loads{ahead=1}" | filecheck %s --check-prefix AHEAD
// RUN: mltriton opt %s -p "schedule-loads" | filecheck %s --check-prefix FITS
// RUN: mltriton opt %s -p "schedule-loads{ahead=0,reload=true}" | filecheck %s --check-prefix RELOAD
// Each load of B stands before the dots that use it, neighbouring dots on different accumulators; one load may stay
// ahead; nothing moves where registers suffice. What is added to a result is loaded block by block, before the first store,
// and a dot's operand is made of what was loaded where the dot stands. A loop loads again what it never changes.

// CHECK: %[[A:.*]] = tt.load %pa
// CHECK: %[[B:.*]] = tt.load %pb :
// CHECK: %[[D0:.*]] = tt.dot {{.*}}, {{.*}}, %c0
// CHECK: %[[D1:.*]] = tt.dot {{.*}}, {{.*}}, %c1
// CHECK: tt.dot {{.*}}, {{.*}}, %[[D0]]
// CHECK: tt.dot {{.*}}, {{.*}}, %[[D1]]
// CHECK: tt.load %pb1
// CHECK: tt.dot {{.*}}, {{.*}}, %c2
// CHECK: @epilogue
// CHECK: tt.load %pd :
// CHECK-NEXT: arith.extf
// CHECK-NEXT: arith.addf
// CHECK-NEXT: tt.load %pd1 :
// CHECK-NEXT: arith.extf
// CHECK-NEXT: arith.addf
// CHECK-NEXT: tt.store
// CHECK: @prologue
// CHECK: tt.load %pb :
// CHECK-NEXT: arith.negf
// CHECK-NEXT: tt.dot
// CHECK-NEXT: tt.load %pb1 :
// CHECK-NEXT: arith.negf
// CHECK-NEXT: tt.dot
// AHEAD: tt.load %pb1
// AHEAD: tt.dot
// FITS: tt.load %pb1
// FITS-NEXT: ttig.extract
// FITS: tt.dot {{.*}}, {{.*}}, %c0
// FITS-NEXT: ttig.extract
// RELOAD: @loop
// RELOAD-NOT: tt.load
// RELOAD: scf.for
// RELOAD: tt.load
// RELOAD-NEXT: tt.dot
module attributes {mltriton.level = "intrinsic", "ttg.num-warps" = 16 : i32, ttg.target = "generic"} {
tt.func public @product(%pa: !tt.ptr<tensor<8x32xf16>>, %pb: !tt.ptr<tensor<32x32xf16>>, %pb1: !tt.ptr<tensor<32x32xf16>>, %c0: tensor<8x16xf32>, %c1: tensor<8x16xf32>, %c2: tensor<8x16xf32>, %out: !tt.ptr<tensor<8x16xf32>>) {
  %a = tt.load %pa : !tt.ptr<tensor<8x32xf16>>
  %b = tt.load %pb : !tt.ptr<tensor<32x32xf16>>
  %b1 = tt.load %pb1 : !tt.ptr<tensor<32x32xf16>>
  %a0 = ttig.extract %a[0] : tensor<8x32xf16> -> tensor<8x16xf16>
  %b00 = ttig.extract %b[0] : tensor<32x32xf16> -> tensor<16x16xf16>
  %d0 = tt.dot %a0, %b00, %c0 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
  %a1 = ttig.extract %a[1] : tensor<8x32xf16> -> tensor<8x16xf16>
  %b10 = ttig.extract %b[1] : tensor<32x32xf16> -> tensor<16x16xf16>
  %e0 = tt.dot %a1, %b10, %d0 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
  %b01 = ttig.extract %b[2] : tensor<32x32xf16> -> tensor<16x16xf16>
  %d1 = tt.dot %a0, %b01, %c1 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
  %b11 = ttig.extract %b[3] : tensor<32x32xf16> -> tensor<16x16xf16>
  %e1 = tt.dot %a1, %b11, %d1 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
  %b02 = ttig.extract %b1[0] : tensor<32x32xf16> -> tensor<16x16xf16>
  %d2 = tt.dot %a0, %b02, %c2 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
  tt.store %out, %e0 : !tt.ptr<tensor<8x16xf32>>
  tt.store %out, %e1 : !tt.ptr<tensor<8x16xf32>>
  tt.store %out, %d2 : !tt.ptr<tensor<8x16xf32>>
  tt.return
}
tt.func public @epilogue(%pd: !tt.ptr<tensor<8x16xf16>>, %pd1: !tt.ptr<tensor<8x16xf16>>, %c0: tensor<8x16xf32>, %c1: tensor<8x16xf32>, %out: !tt.ptr<tensor<8x16xf32>>) {
  %d = tt.load %pd : !tt.ptr<tensor<8x16xf16>>
  %d1 = tt.load %pd1 : !tt.ptr<tensor<8x16xf16>>
  %w = arith.extf %d : tensor<8x16xf16> to tensor<8x16xf32>
  %w1 = arith.extf %d1 : tensor<8x16xf16> to tensor<8x16xf32>
  %s = arith.addf %c0, %w : tensor<8x16xf32>
  %s1 = arith.addf %c1, %w1 : tensor<8x16xf32>
  tt.store %out, %s : !tt.ptr<tensor<8x16xf32>>
  tt.store %out, %s1 : !tt.ptr<tensor<8x16xf32>>
  tt.return
}
tt.func public @prologue(%a: tensor<8x16xf16>, %pb: !tt.ptr<tensor<16x16xf16>>, %pb1: !tt.ptr<tensor<16x16xf16>>, %c0: tensor<8x16xf32>, %out: !tt.ptr<tensor<8x16xf32>>) {
  %b = tt.load %pb : !tt.ptr<tensor<16x16xf16>>
  %b1 = tt.load %pb1 : !tt.ptr<tensor<16x16xf16>>
  %n = arith.negf %b : tensor<16x16xf16>
  %n1 = arith.negf %b1 : tensor<16x16xf16>
  %d0 = tt.dot %a, %n, %c0 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
  %d1 = tt.dot %a, %n1, %d0 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
  tt.store %out, %d1 : !tt.ptr<tensor<8x16xf32>>
  tt.return
}
tt.func public @loop(%pa: !tt.ptr<tensor<8x16xf16>>, %b: tensor<16x16xf16>, %c: tensor<8x16xf32>, %out: !tt.ptr<tensor<8x16xf32>>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a = tt.load %pa : !tt.ptr<tensor<8x16xf16>>
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%d = %c) -> (tensor<8x16xf32>) : i32 {
    %e = tt.dot %a, %b, %d : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
    scf.yield %e : tensor<8x16xf32>
  }
  tt.store %out, %sum : !tt.ptr<tensor<8x16xf32>>
  tt.return
}
}
