// RUN: mltriton opt %s --generic | filecheck %s
// RUN: mltriton opt %s --generic | filecheck %s --check-prefix PROPERTIES
// Generic syntax is what every MLIR tool reads: names in quotes, all types written out, enumerations as integers.

// CHECK: "builtin.module"() ({
// CHECK-NEXT: "tt.func"() <{{{.*}}sym_name = "k"{{.*}}}> ({
// CHECK-NEXT: ^bb0(%p: !tt.ptr<f32>, %c: i1):
// CHECK: "arith.cmpi"(%{{.*}}, %{{.*}}) <{predicate = 2 : i64}> : (i32, i32) -> i1
// CHECK: }) {noinline = false} : () -> ()
// PROPERTIES: "tt.load"(%p, %c) <{evict = 3 : i32, operandSegmentSizes = array<i32: 1, 1, 0>}> : (!tt.ptr<f32>, i1) -> f32
tt.func @k(%p: !tt.ptr<f32>, %c: i1) attributes {noinline = false} {
  %0 = tt.get_program_id x : i32
  %1 = arith.cmpi slt, %0, %0 : i32
  %2 = tt.load %p, %c evictionPolicy = evict_last : !tt.ptr<f32>
  tt.return
}
