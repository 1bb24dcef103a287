#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#dot0 = #ttg.dot_op<{opIdx = 0, parent = #blocked, kWidth = 2}>
module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @kernel(%x_ptr: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %arg1: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}) attributes {noinline = false} {
    %c1024_i32 = arith.constant 1024 : i32
    %cst = arith.constant dense<0xFF800000> : tensor<1024xf32>
    %true = arith.constant true
    %c0_i32 = arith.constant 0 : i32
    %c1_i64 = arith.constant {note = "one"} 1 : i64
    %0 = tt.get_program_id x : i32
    %1 = arith.muli %0, %c1024_i32 : i32
    %2 = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32>
    %3 = tt.splat %1 : i32 -> tensor<1024xi32>
    %4 = arith.addi %3, %2 : tensor<1024xi32>
    %5 = tt.splat %n : i32 -> tensor<1024xi32>
    %6 = arith.cmpi slt, %4, %5 : tensor<1024xi32>
    %7 = tt.splat %x_ptr : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
    %8 = tt.addptr %7, %4 : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
    %9 = tt.load %8, %6 evictionPolicy = evict_last : tensor<1024x!tt.ptr<f32>>
    %10 = tt.load %8, %6, %cst cacheModifier = ca evictionPolicy = evict_first : tensor<1024x!tt.ptr<f32>>
    %11 = tt.load %8, %6 : tensor<1024x!tt.ptr<f32>>
    %12 = tt.load %8, %6 cacheModifier = ca {isVolatile = true} : tensor<1024x!tt.ptr<f32>>
    %13 = arith.addf %9, %10 : tensor<1024xf32>
    %14 = arith.mulf %11, %13 : tensor<1024xf32>
    tt.store %8, %14, %6 : tensor<1024x!tt.ptr<f32>>
    %15 = "tt.reduce"(%14) <{axis = 0 : i32}> ({
    ^bb0(%arg3: f32, %arg4: f32):
      %16 = arith.maxnumf %arg3, %arg4 : f32
      tt.reduce.return %16 : f32
    }) : (tensor<1024xf32>) -> f32
    %17:2 = scf.for %arg5 = %c0_i32 to %n step %c1024_i32 iter_args(%arg6 = %15, %arg7 = %9) -> (f32, tensor<1024xf32>) : i32 {
      %18 = scf.if %true -> (f32) {
        scf.yield %arg6 : f32
      } else {
        %19 = math.exp2 %arg6 : f32
        scf.yield %19 : f32
      }
      tt.print " x: " {isSigned = array<i32: 0>} : %18 : f32
      %20 = arith.select %6, %9, %arg7 : tensor<1024xi1>, tensor<1024xf32>
      scf.yield %18, %20 : f32, tensor<1024xf32>
    } {tt.num_stages = 3 : i32}
    %21 = tt.atomic_rmw fadd, acq_rel, gpu, %x_ptr, %17#0, %true : (!tt.ptr<f32>, f32, i1) -> f32
    %22 = tt.make_tensor_ptr %x_ptr, [%c1_i64, %c1_i64], [%c1_i64, %c1_i64], [%c0_i32, %c0_i32] {order = array<i32: 1, 0>} : <tensor<32x16xf32>>
    %23 = tt.advance %22, [%c0_i32, %c0_i32] : <tensor<32x16xf32>>
    %24 = tt.load %23 {boundaryCheck = array<i32: 0, 1>, padding = 1 : i32} : !tt.ptr<tensor<32x16xf32>>
    %25 = tt.make_tensor_descriptor %x_ptr, [%c0_i32, %c0_i32], [%c1_i64, %c1_i64] : <f32>, <tensor<32x16xf32>>
    %26 = tt.descriptor_load %25[%c0_i32, %c0_i32] : !tt.tensordesc<tensor<32x16xf32>> -> tensor<32x16xf32>
    tt.descriptor_store %25[%c0_i32, %c0_i32], %26 : !tt.tensordesc<tensor<32x16xf32>>, tensor<32x16xf32>
    %27 = tt.trans %26 {order = array<i32: 1, 0>} : tensor<32x16xf32> -> tensor<16x32xf32>
    %cst_0 = arith.constant dense<0.000000e+00> : tensor<32x32xf32>
    %28 = tt.dot %26, %27, %cst_0, inputPrecision = tf32 : tensor<32x16xf32> * tensor<16x32xf32> -> tensor<32x32xf32>
    %cst_1 = arith.constant dense<[[1.000000e+00, 2.000000e+00], [3.000000e+00, 4.000000e+00]]> : tensor<2x2xf32>
    %outLHS, %outRHS = tt.split %cst_1 : tensor<2x2xf32> -> tensor<2xf32>
    %cst_2 = arith.constant dense<1.000000e+00> : tensor<32x16xf32, #blocked>
    %29 = ttg.convert_layout %cst_2 : tensor<32x16xf32, #blocked> -> tensor<32x16xf32, #dot0>
    %30 = ttg.local_alloc %cst_2 : (tensor<32x16xf32, #blocked>) -> !ttg.memdesc<32x16xf32, #ttg.shared_memory, mutable>
    tt.return
  }
}
