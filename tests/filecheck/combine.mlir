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

// Offsets of offsets are one where nothing is promised of the addresses between them.

// CHECK-LABEL: @promised
// CHECK: %[[X:.*]] = tt.addptr %p, %i {tt.divisibility = dense<16> : tensor<1xi32>}
// CHECK: %[[Y:.*]] = tt.addptr %[[X]], %j
// CHECK: tt.addptr %p, %{{.*}} {tt.divisibility = dense<8> : tensor<1xi32>}
tt.func @promised(%p: !tt.ptr<f16>, %i: i32, %j: i32) -> (!tt.ptr<f16>, !tt.ptr<f16>) {
  %x = tt.addptr %p, %i {tt.divisibility = dense<16> : tensor<1xi32>} : !tt.ptr<f16>, i32
  %y = tt.addptr %x, %j : !tt.ptr<f16>, i32
  %z = tt.addptr %p, %j : !tt.ptr<f16>, i32
  %w = tt.addptr %z, %i {tt.divisibility = dense<8> : tensor<1xi32>} : !tt.ptr<f16>, i32
  tt.return %y, %w : !tt.ptr<f16>, !tt.ptr<f16>
}
