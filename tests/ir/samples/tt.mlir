module {
  tt.func private @double(%x: i32) -> i32 {
    %0 = arith.addi %x, %x : i32
    tt.return %0 : i32
  }
  tt.func private @declared(!tt.ptr<f32>, i32) -> (i32, f32)
  tt.func public @program(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32, %c: i1) attributes {noinline = false} {
    %0 = tt.get_program_id x : i32
    %1 = tt.get_num_programs z : i32
    %2 = tt.call @double(%0) : (i32) -> i32
    %3 = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
    tt.print "x = " {hex = true} : %3, %n : tensor<16xi32>, i32
    tt.print "here"
    tt.python "pdb:set_trace", "{\22n\22: 1}" : %3, %n : tensor<16xi32>, i32
    tt.assert %c, "n must be \22even\22" : i1
    llvm.intr.assume %c : i1
    gpu.barrier
    tt.return
  }
  tt.func public @shapes(%x: f32, %a: tensor<4x8xf32>, %i: tensor<2x8xi32>) {
    %0 = tt.splat %x : f32 -> tensor<1xf32>
    %1 = tt.unsplat %0 : tensor<1xf32>
    %2 = tt.expand_dims %a {axis = 1 : i32} : tensor<4x8xf32> -> tensor<4x1x8xf32>
    %3 = tt.broadcast %2 : tensor<4x1x8xf32> -> tensor<4x2x8xf32>
    %4 = tt.reshape %a : tensor<4x8xf32> -> tensor<32xf32>
    %5 = tt.reshape %a allow_reorder : tensor<4x8xf32> -> tensor<2x16xf32>
    %6 = tt.trans %3 {order = array<i32: 2, 0, 1>} : tensor<4x2x8xf32> -> tensor<8x4x2xf32>
    %7 = tt.join %a, %a : tensor<4x8xf32> -> tensor<4x8x2xf32>
    %lhs, %rhs = tt.split %7 : tensor<4x8x2xf32> -> tensor<4x8xf32>
    %8 = tt.cat %a, %a : tensor<4x8xf32> -> tensor<8x8xf32>
    %9 = tt.gather %a[%i] {axis = 0 : i32} : (tensor<4x8xf32>, tensor<2x8xi32>) -> tensor<2x8xf32>
    tt.return
  }
  tt.func public @memory(%p: !tt.ptr<f32>, %pp: tensor<8x!tt.ptr<f32>>, %o: tensor<8xi32>, %m: tensor<8xi1>, %v: tensor<8xf32>, %s: f32, %c: i1, %q: !tt.ptr<i32>, %n: i32) {
    %0 = tt.addptr %pp, %o : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
    %1 = tt.addptr %p, %n : !tt.ptr<f32>, i32
    %2 = tt.load %0 : tensor<8x!tt.ptr<f32>>
    %3 = tt.load %0, %m : tensor<8x!tt.ptr<f32>>
    %4 = tt.load %0, %m, %v cacheModifier = ca evictionPolicy = evict_last {isVolatile = true} : tensor<8x!tt.ptr<f32>>
    %5 = tt.load %p, %c, %s : !tt.ptr<f32>
    tt.store %p, %s : !tt.ptr<f32>
    tt.store %0, %v, %m cacheModifier = cs : tensor<8x!tt.ptr<f32>>
    %6 = tt.atomic_rmw fadd, acq_rel, gpu, %0, %v, %m : (tensor<8x!tt.ptr<f32>>, tensor<8xf32>, tensor<8xi1>) -> tensor<8xf32>
    %7 = tt.atomic_rmw max, relaxed, cta, %q, %n : (!tt.ptr<i32>, i32) -> i32
    %8 = tt.atomic_cas acquire, sys, %q, %n, %n : (!tt.ptr<i32>, i32, i32) -> i32
    tt.return
  }
  tt.func public @blocks(%p: !tt.ptr<f16>, %m: i32, %i: i32, %s: i64, %one: i64) {
    %0 = tt.make_tensor_ptr %p, [%s, %s], [%s, %one], [%i, %i] {order = array<i32: 1, 0>} : <tensor<16x32xf16>>
    %1 = tt.advance %0, [%i, %i] : <tensor<16x32xf16>>
    %2 = tt.load %1 {boundaryCheck = array<i32: 0, 1>, padding = 2 : i32} : !tt.ptr<tensor<16x32xf16>>
    tt.store %1, %2 {boundaryCheck = array<i32: 1>} : !tt.ptr<tensor<16x32xf16>>
    %3 = tt.make_tensor_descriptor %p, [%m, %m], [%s, %one] : <f16>, <tensor<16x32xf16>>
    %4 = tt.descriptor_load %3[%i, %i] evictionPolicy = evict_first : !tt.tensordesc<tensor<16x32xf16>> -> tensor<16x32xf16>
    tt.descriptor_store %3[%i, %i], %4 : !tt.tensordesc<tensor<16x32xf16>>, tensor<16x32xf16>
    tt.descriptor_reduce add, %3[%i, %i], %4 : !tt.tensordesc<tensor<16x32xf16>>, tensor<16x32xf16>
    tt.return
  }
  tt.func public @compute(%a: tensor<16x8xf16>, %b: tensor<8x4xf16>, %c: tensor<16x4xf32>, %k: tensor<16x8xi32>) {
    %0 = tt.dot %a, %b, %c : tensor<16x8xf16> * tensor<8x4xf16> -> tensor<16x4xf32>
    %1 = tt.dot %a, %b, %0, inputPrecision = tf32x3 tiling = horizontal {maxNumImpreciseAcc = 32 : i32} : tensor<16x8xf16> * tensor<8x4xf16> -> tensor<16x4xf32>
    %2:2 = "tt.reduce"(%a, %k) <{axis = 1 : i32}> ({
    ^bb0(%arg0: f16, %arg1: i32, %arg2: f16, %arg3: i32):
      %3 = arith.cmpf ogt, %arg0, %arg2 : f16
      %4 = arith.select %3, %arg0, %arg2 : f16
      %5 = arith.select %3, %arg1, %arg3 : i32
      tt.reduce.return %4, %5 : f16, i32
    }) : (tensor<16x8xf16>, tensor<16x8xi32>) -> (tensor<16xf16>, tensor<16xi32>)
    %6 = "tt.reduce"(%2#1) <{axis = 0 : i32}> ({
    ^bb0(%arg4: i32, %arg5: i32):
      %7 = arith.addi %arg4, %arg5 : i32
      tt.reduce.return %7 : i32
    }) : (tensor<16xi32>) -> i32
    %8 = "tt.scan"(%c) <{axis = 0 : i32, reverse = true}> ({
    ^bb0(%arg6: f32, %arg7: f32):
      %9 = arith.addf %arg6, %arg7 : f32
      tt.scan.return %9 : f32
    }) : (tensor<16x4xf32>) -> tensor<16x4xf32>
    %10 = tt.mulhiui %6, %6 : i32
    %asm = tt.inline_asm "leal 1($1), $0" "=r,r" {gives = [i32]} %10 : i32 -> i32
    %effect, %effect_0 = tt.volatile_asm "xchgl $0, $1" "=r,=r,0,1" {gives = [i32, i32]} %10, %10 : i32, i32 -> i32, i32
    %11 = tt.clampf %c, %8, %0, propagateNan = all : tensor<16x4xf32>
    tt.return
  }
  tt.func public @elementwise(%x: tensor<4xf32>, %i: tensor<4xi64>, %p: !tt.ptr<f32>) {
    %0 = tt.bitcast %p : !tt.ptr<f32> -> !tt.ptr<i32>
    %1 = tt.int_to_ptr %i : tensor<4xi64> -> tensor<4x!tt.ptr<f16>>
    %2 = tt.ptr_to_int %1 : tensor<4x!tt.ptr<f16>> -> tensor<4xi64>
    %3 = tt.fp_to_fp %x, rounding = rtne : tensor<4xf32> -> tensor<4xf8E5M2>
    %4 = tt.fp_to_fp %3 : tensor<4xf8E5M2> -> tensor<4xf32>
    %5 = tt.precise_sqrt %x : tensor<4xf32>
    %6 = tt.precise_divf %x, %5 : tensor<4xf32>
    %7 = tt.clampf %x, %5, %6, propagateNan = none : tensor<4xf32>
    tt.return
  }
}
