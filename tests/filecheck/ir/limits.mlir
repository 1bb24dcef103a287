// RUN: not mltriton opt %s -p canonicalize 2>&1 | filecheck %s
// At level intrinsic each operation is held to the table of the target that the module names.

// CHECK: limits.mlir:11:3: VerificationError: tt.dot: the target generic has no dot of this size
// CHECK-NEXT: 11 |   %0 = tt.dot %a, %b, %c
// CHECK-NEXT: |   ^
// CHECK-NEXT: expected M x N x K = 1 or 2 or 4 or 8 x 16 x 16 for f16, found 8x16x32
// CHECK-NEXT: in: %0 = tt.dot %a, %b, %c : tensor<8x32xf16> * tensor<32x16xf16> -> tensor<8x16xf32>
module attributes {mltriton.level = "intrinsic", ttg.target = "generic"} {
tt.func @k(%a: tensor<8x32xf16>, %b: tensor<32x16xf16>, %c: tensor<8x16xf32>) {
  %0 = tt.dot %a, %b, %c : tensor<8x32xf16> * tensor<32x16xf16> -> tensor<8x16xf32>
  tt.return
}
}
