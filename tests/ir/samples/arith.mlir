module {
  tt.func @integers(%a: i32, %b: i32, %t: tensor<4xi64>, %i: index) {
    %0 = arith.addi %a, %b : i32
    %1 = arith.subi %a, %b : i32
    %2 = arith.muli %a, %b : i32
    %3 = arith.divsi %a, %b : i32
    %4 = arith.divui %a, %b : i32
    %5 = arith.ceildivsi %a, %b : i32
    %6 = arith.floordivsi %a, %b : i32
    %7 = arith.remsi %a, %b : i32
    %8 = arith.remui %a, %b : i32
    %9 = arith.andi %a, %b : i32
    %10 = arith.ori %a, %b : i32
    %11 = arith.xori %a, %b : i32
    %12 = arith.shli %a, %b : i32
    %13 = arith.shrsi %a, %b : i32
    %14 = arith.shrui %a, %b : i32
    %15 = arith.maxsi %t, %t : tensor<4xi64>
    %16 = arith.minsi %t, %t : tensor<4xi64>
    %17 = arith.maxui %t, %t : tensor<4xi64>
    %18 = arith.minui %t, %t : tensor<4xi64>
    %19 = arith.cmpi slt, %a, %b : i32
    %20 = arith.cmpi uge, %t, %t : tensor<4xi64>
    %21 = arith.select %19, %a, %b : i32
    %22 = arith.select %20, %t, %15 : tensor<4xi1>, tensor<4xi64>
    %23 = arith.select %19, %t, %15 : tensor<4xi64>
    %24 = arith.extsi %a : i32 to i64
    %25 = arith.extui %19 : i1 to i32
    %26 = arith.trunci %t : tensor<4xi64> to tensor<4xi8>
    %27 = arith.index_cast %i : index to i32
    %28 = arith.bitcast %a : i32 to f32
    %29 = arith.sitofp %a : i32 to f32
    %30 = arith.uitofp %t : tensor<4xi64> to tensor<4xf64>
    %31 = math.absi %t : tensor<4xi64>
    %c = arith.constant 1 : index
    %c_0 = arith.constant -7 : i8
    %c_1 = arith.constant true
    %c_2 = arith.constant dense<[true, false, true, false]> : tensor<4xi1>
    %c_3 = arith.constant dense<[[1, 2], [-3, 4]]> : tensor<2x2xi16>
    tt.return
  }
  tt.func @floats(%x: f32, %t: tensor<8x2xf16>) {
    %0 = arith.addf %x, %x : f32
    %1 = arith.subf %x, %x : f32
    %2 = arith.mulf %t, %t : tensor<8x2xf16>
    %3 = arith.divf %t, %t : tensor<8x2xf16>
    %4 = arith.remf %x, %x : f32
    %5 = arith.maximumf %x, %x : f32
    %6 = arith.minimumf %x, %x : f32
    %7 = arith.maxnumf %t, %t : tensor<8x2xf16>
    %8 = arith.minnumf %t, %t : tensor<8x2xf16>
    %9 = arith.negf %t : tensor<8x2xf16>
    %10 = arith.cmpf olt, %t, %t : tensor<8x2xf16>
    %11 = arith.cmpf uno, %x, %x : f32
    %12 = arith.extf %t : tensor<8x2xf16> to tensor<8x2xf32>
    %13 = arith.truncf %x : f32 to bf16
    %14 = arith.fptosi %x : f32 to i32
    %15 = arith.fptoui %t : tensor<8x2xf16> to tensor<8x2xi8>
    %16 = math.exp %x : f32
    %17 = math.exp2 %x : f32
    %18 = math.log %x : f32
    %19 = math.log2 %t : tensor<8x2xf16>
    %20 = math.sin %x : f32
    %21 = math.cos %x : f32
    %22 = math.tanh %x : f32
    %23 = math.erf %t : tensor<8x2xf16>
    %24 = math.sqrt %x : f32
    %25 = math.rsqrt %x : f32
    %26 = math.absf %t : tensor<8x2xf16>
    %27 = math.floor %x : f32
    %28 = math.ceil %x : f32
    %29 = math.fma %x, %0, %1 : f32
    %cst = arith.constant 1.000000e-01 : f32
    %cst_0 = arith.constant 0x7FC00000 : f32
    %cst_1 = arith.constant dense<0xFF80> : tensor<4xbf16>
    %cst_2 = arith.constant dense<[1.000000e+00, -0.000000e+00, 0x7C00]> : tensor<3xf16>
    %cst_3 = arith.constant 3.3333333333333331e-01 : f64
    %cst_4 = arith.constant dense<2.400000e+02> : tensor<2xf8E4M3FN>
    %cst_5 = arith.constant dense<5.734400e+04> : tensor<2xf8E5M2>
    tt.return
  }
}
