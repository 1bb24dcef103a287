// RUN: mltriton opt %s --split-input-file | filecheck %s
// Each part is a module of its own: names and aliases do not meet.

// CHECK: module {
// CHECK-NEXT: tt.func @k(%x: i32) {
tt.func @k(%x: i32) {
  tt.return
}

// -----

// CHECK: // -----
// CHECK: #blocked = #ttg.blocked<{sizePerWarp = [8], warpsPerCTA = [4], order = [0]}>
// CHECK-NEXT: module attributes {mltriton.level = "ttg"} {
// CHECK-NEXT: tt.func @k(%x: tensor<32xf32, #blocked>) {
#layout = #ttg.blocked<{sizePerWarp = [8], warpsPerCTA = [4], order = [0]}>
module attributes {mltriton.level = "ttg"} {
  tt.func @k(%x: tensor<32xf32, #layout>) {
    tt.return
  }
}
