// RUN: mltriton opt %s -p "shorten-powers" | filecheck %s
// Powers that are rounded to 16 bits need no more, though they are added up, too; as they are or times something, or one
// of two choices. Not so where something else takes them, and where they are only added up, or their products.
module {
// CHECK-LABEL: @rounded
// CHECK: math.exp2 %{{.*}} {bits = 8 : i32} :
// CHECK: math.exp2 %{{.*}} {bits = 11 : i32} :
// CHECK: math.exp2 %{{.*}} {bits = 11 : i32} :
tt.func public @rounded(%x: tensor<16x32xf32>, %m: tensor<16x32xi1>) -> (tensor<16x32xbf16>, tensor<16xf32>, tensor<16x32xf16>, tensor<16x32xbf16>, tensor<16x32xf16>) {
  %p = math.exp2 %x : tensor<16x32xf32>
  %a = arith.truncf %p : tensor<16x32xf32> to tensor<16x32xbf16>
  %s = "tt.reduce"(%p) ({
  ^bb0(%l: f32, %r: f32):
    %add = arith.addf %l, %r : f32
    tt.reduce.return %add : f32
  }) {axis = 1 : i32} : (tensor<16x32xf32>) -> tensor<16xf32>
  %q = math.exp2 %x : tensor<16x32xf32>
  %scaled = arith.mulf %q, %x : tensor<16x32xf32>
  %b = arith.truncf %scaled : tensor<16x32xf32> to tensor<16x32xf16>
  %c = arith.truncf %q : tensor<16x32xf32> to tensor<16x32xbf16>
  %t = math.exp2 %x : tensor<16x32xf32>
  %chosen = arith.select %m, %t, %x : tensor<16x32xi1>, tensor<16x32xf32>
  %d = arith.truncf %chosen : tensor<16x32xf32> to tensor<16x32xf16>
  tt.return %a, %s, %b, %c, %d : tensor<16x32xbf16>, tensor<16xf32>, tensor<16x32xf16>, tensor<16x32xbf16>, tensor<16x32xf16>
}

// CHECK-LABEL: @whole
// CHECK-NOT: bits
tt.func public @whole(%x: tensor<16x32xf32>, %y: f32) -> (tensor<16x32xbf16>, tensor<16x32xf32>, tensor<16xf32>, tensor<16x32xbf16>, tensor<16xf32>, bf16) {
  %p = math.exp2 %x : tensor<16x32xf32>
  %a = arith.truncf %p : tensor<16x32xf32> to tensor<16x32xbf16>
  %q = math.exp2 %x : tensor<16x32xf32>
  %s = "tt.reduce"(%q) ({
  ^bb0(%l: f32, %r: f32):
    %add = arith.addf %l, %r : f32
    tt.reduce.return %add : f32
  }) {axis = 1 : i32} : (tensor<16x32xf32>) -> tensor<16xf32>
  %t = math.exp2 %x : tensor<16x32xf32>
  %scaled = arith.mulf %t, %x : tensor<16x32xf32>
  %b = arith.truncf %scaled : tensor<16x32xf32> to tensor<16x32xbf16>
  %u = "tt.reduce"(%scaled) ({
  ^bb0(%l: f32, %r: f32):
    %add = arith.addf %l, %r : f32
    tt.reduce.return %add : f32
  }) {axis = 1 : i32} : (tensor<16x32xf32>) -> tensor<16xf32>
  %n = math.exp2 %y : f32
  %c = arith.truncf %n : f32 to bf16
  tt.return %a, %p, %s, %b, %u, %c : tensor<16x32xbf16>, tensor<16x32xf32>, tensor<16xf32>, tensor<16x32xbf16>, tensor<16xf32>, bf16
}
}
