// RUN: mltriton opt %s -p choose-registers | filecheck %s
// A block of 8x16xf32 takes 8 registers of 64 bytes, two block pointers one, and 12 are kept: the smallest mode will do.

// CHECK: module attributes {
// CHECK-SAME: ttig.register_mode = 128 : i32, ttig.registers = 21 : i32
module attributes {mltriton.level = "intrinsic", "ttg.num-warps" = 4 : i32, ttg.target = "generic"} {
tt.func public @move(%p: !tt.ptr<tensor<8x16xf32>>, %q: !tt.ptr<tensor<8x16xf32>>) {
  %x = tt.load %p : !tt.ptr<tensor<8x16xf32>>
  tt.store %q, %x : !tt.ptr<tensor<8x16xf32>>
  tt.return
}
}
