// RUN: mltriton opt %s -p flush-roundings | filecheck %s
// Roundings may lose denormals where a dot, which drops them on this target, gave the number or is all that takes it.

module attributes {ttg.target = "cpu:amx"} {
  // CHECK-LABEL: @sums
  // CHECK: arith.truncf %{{.*}} {flushes = true} : tensor<32x32xf32>
  // CHECK: arith.truncf %{{.*}} : tensor<32x32xf32>
  tt.func @sums(%a: tensor<32x32xbf16>, %b: tensor<32x32xbf16>, %begun: tensor<32x32xf32>, %n: i32)
      -> (tensor<32x32xbf16>, tensor<32x32xbf16>) {
    %zero = arith.constant dense<0.0> : tensor<32x32xf32>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<32x32xf32>) : i32 {
      %next = tt.dot %a, %b, %acc : tensor<32x32xbf16> * tensor<32x32xbf16> -> tensor<32x32xf32>
      scf.yield %next : tensor<32x32xf32>
    }
    %more = tt.dot %a, %b, %begun : tensor<32x32xbf16> * tensor<32x32xbf16> -> tensor<32x32xf32>
    %c = arith.truncf %sum : tensor<32x32xf32> to tensor<32x32xbf16>
    %d = arith.truncf %more : tensor<32x32xf32> to tensor<32x32xbf16>
    tt.return %c, %d : tensor<32x32xbf16>, tensor<32x32xbf16>
  }
  // CHECK-LABEL: @operands
  // CHECK: arith.truncf %p {flushes = true}
  // CHECK: arith.truncf %q :
  tt.func @operands(%p: tensor<32x32xf32>, %q: tensor<32x32xf32>, %b: tensor<32x32xbf16>)
      -> (tensor<32x32xf32>, tensor<32x32xbf16>) {
    %zero = arith.constant dense<0.0> : tensor<32x32xf32>
    %a = arith.truncf %p : tensor<32x32xf32> to tensor<32x32xbf16>
    %e = arith.truncf %q : tensor<32x32xf32> to tensor<32x32xbf16>
    %t = tt.trans %a {order = array<i32: 1, 0>} : tensor<32x32xbf16> -> tensor<32x32xbf16>
    %c = tt.dot %t, %b, %zero : tensor<32x32xbf16> * tensor<32x32xbf16> -> tensor<32x32xf32>
    %d = tt.dot %e, %b, %c : tensor<32x32xbf16> * tensor<32x32xbf16> -> tensor<32x32xf32>
    tt.return %d, %e : tensor<32x32xf32>, tensor<32x32xbf16>
  }
}
