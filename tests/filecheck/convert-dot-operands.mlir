// RUN: mltriton opt %s -p convert-dot-operands | filecheck %s
// The CPU multiplies bytes four at a time along K; where K is shorter, unsigned bytes are extended as what they are.

module attributes {ttg.target = "cpu:avx2"} {
  // CHECK-LABEL: @quads
  // CHECK-NEXT: tt.dot %a, %b, %c {a_unsigned = true} : tensor<8x8xi8> * tensor<8x16xi8> -> tensor<8x16xi32>
  tt.func @quads(%a: tensor<8x8xi8>, %b: tensor<8x16xi8>, %c: tensor<8x16xi32>) -> tensor<8x16xi32> {
    %d = tt.dot %a, %b, %c {a_unsigned = true} : tensor<8x8xi8> * tensor<8x16xi8> -> tensor<8x16xi32>
    tt.return %d : tensor<8x16xi32>
  }
  // CHECK-LABEL: @pairs
  // CHECK-NEXT: %[[A:.*]] = arith.extsi %a : tensor<8x2xi8> to tensor<8x2xi32>
  // CHECK-NEXT: %[[B:.*]] = arith.extui %b : tensor<2x16xi8> to tensor<2x16xi32>
  // CHECK-NEXT: tt.dot %[[A]], %[[B]], %c : tensor<8x2xi32> * tensor<2x16xi32> -> tensor<8x16xi32>
  tt.func @pairs(%a: tensor<8x2xi8>, %b: tensor<2x16xi8>, %c: tensor<8x16xi32>) -> tensor<8x16xi32> {
    %d = tt.dot %a, %b, %c {b_unsigned = true} : tensor<8x2xi8> * tensor<2x16xi8> -> tensor<8x16xi32>
    tt.return %d : tensor<8x16xi32>
  }
}
