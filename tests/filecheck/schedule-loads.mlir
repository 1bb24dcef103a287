// RUN: mltriton opt %s -p "schedule-loads{ahead=0}" | filecheck %s
// RUN: mltriton opt %s -p "schedule-loads{ahead=1}" | filecheck %s --check-prefix AHEAD
// RUN: mltriton opt %s -p "schedule-loads" | filecheck %s --check-prefix FITS
// Each load of B stands before the dots that use it, neighbouring dots on different accumulators; one load may stay
// ahead; nothing moves where registers suffice.

// CHECK: %[[A:.*]] = tt.load %pa
// CHECK: %[[B:.*]] = tt.load %pb :
// CHECK: %[[D0:.*]] = tt.dot {{.*}}, {{.*}}, %c0
// CHECK: %[[D1:.*]] = tt.dot {{.*}}, {{.*}}, %c1
// CHECK: tt.dot {{.*}}, {{.*}}, %[[D0]]
// CHECK: tt.dot {{.*}}, {{.*}}, %[[D1]]
// CHECK: tt.load %pb1
// CHECK: tt.dot {{.*}}, {{.*}}, %c2
// AHEAD: tt.load %pb1
// AHEAD: tt.dot
// FITS: tt.load %pb1
// FITS-NEXT: ttig.extract
// FITS: tt.dot {{.*}}, {{.*}}, %c0
// FITS-NEXT: ttig.extract
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
}
