// RUN: not mltriton opt %s 2>&1 | filecheck %s
// A rule that is broken is named with the operation as it stands in the program.

// CHECK: invalid.mlir:10:3: VerificationError: tt.dot: the shapes do not multiply
// CHECK-NEXT: 10 |   %0 = "tt.dot"(%a, %b, %c)
// CHECK-NEXT: |   ^
// CHECK-NEXT: expected [M, K] x [K, N] -> [M, N], found tensor<16x8xf32> x tensor<16x8xf32> -> tensor<16x8xf32>
// CHECK-NEXT: in: %0 = tt.dot %a, %b, %c : tensor<16x8xf32> * tensor<16x8xf32> -> tensor<16x8xf32>
tt.func @k(%a: tensor<16x8xf32>, %b: tensor<16x8xf32>, %c: tensor<16x8xf32>) {
  %0 = "tt.dot"(%a, %b, %c) : (tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>
  tt.return
}
