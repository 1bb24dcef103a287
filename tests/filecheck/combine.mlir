// RUN: mltriton opt %s -p combine,dce | filecheck %s
// A sum with a dot that starts at zero becomes the dot's accumulator.

// CHECK-LABEL: @accumulate
// CHECK-NEXT: %[[R:.*]] = tt.dot %a, %b, %c
// CHECK-NEXT: tt.return %[[R]]
tt.func @accumulate(%a: tensor<16x16xf16>, %b: tensor<16x16xf16>, %c: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %zero = arith.constant dense<0.000000e+00> : tensor<16x16xf32>
  %0 = tt.dot %a, %b, %zero : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
  %1 = arith.addf %0, %c : tensor<16x16xf32>
  tt.return %1 : tensor<16x16xf32>
}
