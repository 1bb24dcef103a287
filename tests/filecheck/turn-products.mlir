// RUN: mltriton opt %s -p "turn-products,dce,canonicalize" | filecheck %s
// The right operand of @turned lies by rows, which wgmma does not take of f32: the transposes are multiplied. Exact
// products, right operands by columns and few columns of results stay as they are.

// CHECK-LABEL: @turned
// CHECK: %[[ZEROS:.*]] = arith.constant dense<0.000000e+00> : tensor<128x64xf32>
// CHECK: %[[SUM:.*]] = scf.for {{.*}} iter_args(%[[ACC:.*]] = %[[ZEROS]]) -> (tensor<128x64xf32>)
// CHECK-DAG: %[[X:.*]] = tt.load %{{.*}} : tensor<64x32x!tt.ptr<f32>>
// CHECK-DAG: %[[Y:.*]] = tt.load %{{.*}} : tensor<32x128x!tt.ptr<f32>>
// CHECK-DAG: %[[XT:.*]] = tt.trans %[[X]]
// CHECK-DAG: %[[YT:.*]] = tt.trans %[[Y]]
// CHECK: tt.dot %[[YT]], %[[XT]], %[[ACC]], inputPrecision = tf32 : tensor<128x32xf32> * tensor<32x64xf32> -> tensor<128x64xf32>
// CHECK: tt.trans %[[SUM]]
// CHECK-LABEL: @once
// CHECK: tt.dot {{.*}} -> tensor<128x64xf32>
// CHECK: tt.trans {{.*}} : tensor<128x64xf32> -> tensor<64x128xf32>
// CHECK-LABEL: @exact
// CHECK-NOT: tt.trans
// CHECK-LABEL: @columns
// CHECK-NOT: tt.trans
// CHECK-LABEL: @few
// CHECK-NOT: tt.trans
module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90"} {
tt.func public @turned(%a: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %b: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %c: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %steps: i32) {
  %xr = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %xc = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
  %xr2 = tt.expand_dims %xr {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %xc2 = tt.expand_dims %xc {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %xs = arith.constant dense<256> : tensor<64x1xi32>
  %xrs = arith.muli %xr2, %xs : tensor<64x1xi32>
  %xrb = tt.broadcast %xrs : tensor<64x1xi32> -> tensor<64x32xi32>
  %xcb = tt.broadcast %xc2 : tensor<1x32xi32> -> tensor<64x32xi32>
  %xat = arith.addi %xrb, %xcb : tensor<64x32xi32>
  %xbase = tt.splat %a : !tt.ptr<f32> -> tensor<64x32x!tt.ptr<f32>>
  %xp = tt.addptr %xbase, %xat : tensor<64x32x!tt.ptr<f32>>, tensor<64x32xi32>
  %yr = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
  %yc = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
  %yr2 = tt.expand_dims %yr {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
  %yc2 = tt.expand_dims %yc {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
  %ys = arith.constant dense<256> : tensor<32x1xi32>
  %yrs = arith.muli %yr2, %ys : tensor<32x1xi32>
  %yrb = tt.broadcast %yrs : tensor<32x1xi32> -> tensor<32x128xi32>
  %ycb = tt.broadcast %yc2 : tensor<1x128xi32> -> tensor<32x128xi32>
  %yat = arith.addi %yrb, %ycb : tensor<32x128xi32>
  %ybase = tt.splat %b : !tt.ptr<f32> -> tensor<32x128x!tt.ptr<f32>>
  %yp = tt.addptr %ybase, %yat : tensor<32x128x!tt.ptr<f32>>, tensor<32x128xi32>
  %zr = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %zc = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
  %zr2 = tt.expand_dims %zr {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %zc2 = tt.expand_dims %zc {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
  %zs = arith.constant dense<256> : tensor<64x1xi32>
  %zrs = arith.muli %zr2, %zs : tensor<64x1xi32>
  %zrb = tt.broadcast %zrs : tensor<64x1xi32> -> tensor<64x128xi32>
  %zcb = tt.broadcast %zc2 : tensor<1x128xi32> -> tensor<64x128xi32>
  %zat = arith.addi %zrb, %zcb : tensor<64x128xi32>
  %zbase = tt.splat %c : !tt.ptr<f32> -> tensor<64x128x!tt.ptr<f32>>
  %zp = tt.addptr %zbase, %zat : tensor<64x128x!tt.ptr<f32>>, tensor<64x128xi32>
  %zeros = arith.constant dense<0.000000e+00> : tensor<64x128xf32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %sum = scf.for %i = %c0 to %steps step %c1 iter_args(%acc = %zeros) -> (tensor<64x128xf32>) : i32 {
    %x = tt.load %xp : tensor<64x32x!tt.ptr<f32>>
    %y = tt.load %yp : tensor<32x128x!tt.ptr<f32>>
    %d = tt.dot %x, %y, %acc, inputPrecision = tf32 : tensor<64x32xf32> * tensor<32x128xf32> -> tensor<64x128xf32>
    scf.yield %d : tensor<64x128xf32>
  }
  tt.store %zp, %sum : tensor<64x128x!tt.ptr<f32>>
  tt.return
}
tt.func public @once(%a: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %b: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %c: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %steps: i32) {
  %xr = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %xc = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
  %xr2 = tt.expand_dims %xr {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %xc2 = tt.expand_dims %xc {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %xs = arith.constant dense<256> : tensor<64x1xi32>
  %xrs = arith.muli %xr2, %xs : tensor<64x1xi32>
  %xrb = tt.broadcast %xrs : tensor<64x1xi32> -> tensor<64x32xi32>
  %xcb = tt.broadcast %xc2 : tensor<1x32xi32> -> tensor<64x32xi32>
  %xat = arith.addi %xrb, %xcb : tensor<64x32xi32>
  %xbase = tt.splat %a : !tt.ptr<f32> -> tensor<64x32x!tt.ptr<f32>>
  %xp = tt.addptr %xbase, %xat : tensor<64x32x!tt.ptr<f32>>, tensor<64x32xi32>
  %yr = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
  %yc = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
  %yr2 = tt.expand_dims %yr {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
  %yc2 = tt.expand_dims %yc {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
  %ys = arith.constant dense<256> : tensor<32x1xi32>
  %yrs = arith.muli %yr2, %ys : tensor<32x1xi32>
  %yrb = tt.broadcast %yrs : tensor<32x1xi32> -> tensor<32x128xi32>
  %ycb = tt.broadcast %yc2 : tensor<1x128xi32> -> tensor<32x128xi32>
  %yat = arith.addi %yrb, %ycb : tensor<32x128xi32>
  %ybase = tt.splat %b : !tt.ptr<f32> -> tensor<32x128x!tt.ptr<f32>>
  %yp = tt.addptr %ybase, %yat : tensor<32x128x!tt.ptr<f32>>, tensor<32x128xi32>
  %zr = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %zc = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
  %zr2 = tt.expand_dims %zr {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %zc2 = tt.expand_dims %zc {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
  %zs = arith.constant dense<256> : tensor<64x1xi32>
  %zrs = arith.muli %zr2, %zs : tensor<64x1xi32>
  %zrb = tt.broadcast %zrs : tensor<64x1xi32> -> tensor<64x128xi32>
  %zcb = tt.broadcast %zc2 : tensor<1x128xi32> -> tensor<64x128xi32>
  %zat = arith.addi %zrb, %zcb : tensor<64x128xi32>
  %zbase = tt.splat %c : !tt.ptr<f32> -> tensor<64x128x!tt.ptr<f32>>
  %zp = tt.addptr %zbase, %zat : tensor<64x128x!tt.ptr<f32>>, tensor<64x128xi32>
  %acc = arith.constant dense<0.000000e+00> : tensor<64x128xf32>
  %x = tt.load %xp : tensor<64x32x!tt.ptr<f32>>
  %y = tt.load %yp : tensor<32x128x!tt.ptr<f32>>
  %d = tt.dot %x, %y, %acc, inputPrecision = tf32 : tensor<64x32xf32> * tensor<32x128xf32> -> tensor<64x128xf32>
  tt.store %zp, %d : tensor<64x128x!tt.ptr<f32>>
  tt.return
}
tt.func public @exact(%a: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %b: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %c: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %steps: i32) {
  %xr = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %xc = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
  %xr2 = tt.expand_dims %xr {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %xc2 = tt.expand_dims %xc {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %xs = arith.constant dense<256> : tensor<64x1xi32>
  %xrs = arith.muli %xr2, %xs : tensor<64x1xi32>
  %xrb = tt.broadcast %xrs : tensor<64x1xi32> -> tensor<64x32xi32>
  %xcb = tt.broadcast %xc2 : tensor<1x32xi32> -> tensor<64x32xi32>
  %xat = arith.addi %xrb, %xcb : tensor<64x32xi32>
  %xbase = tt.splat %a : !tt.ptr<f32> -> tensor<64x32x!tt.ptr<f32>>
  %xp = tt.addptr %xbase, %xat : tensor<64x32x!tt.ptr<f32>>, tensor<64x32xi32>
  %yr = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
  %yc = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
  %yr2 = tt.expand_dims %yr {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
  %yc2 = tt.expand_dims %yc {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
  %ys = arith.constant dense<256> : tensor<32x1xi32>
  %yrs = arith.muli %yr2, %ys : tensor<32x1xi32>
  %yrb = tt.broadcast %yrs : tensor<32x1xi32> -> tensor<32x128xi32>
  %ycb = tt.broadcast %yc2 : tensor<1x128xi32> -> tensor<32x128xi32>
  %yat = arith.addi %yrb, %ycb : tensor<32x128xi32>
  %ybase = tt.splat %b : !tt.ptr<f32> -> tensor<32x128x!tt.ptr<f32>>
  %yp = tt.addptr %ybase, %yat : tensor<32x128x!tt.ptr<f32>>, tensor<32x128xi32>
  %zr = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %zc = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
  %zr2 = tt.expand_dims %zr {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %zc2 = tt.expand_dims %zc {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
  %zs = arith.constant dense<256> : tensor<64x1xi32>
  %zrs = arith.muli %zr2, %zs : tensor<64x1xi32>
  %zrb = tt.broadcast %zrs : tensor<64x1xi32> -> tensor<64x128xi32>
  %zcb = tt.broadcast %zc2 : tensor<1x128xi32> -> tensor<64x128xi32>
  %zat = arith.addi %zrb, %zcb : tensor<64x128xi32>
  %zbase = tt.splat %c : !tt.ptr<f32> -> tensor<64x128x!tt.ptr<f32>>
  %zp = tt.addptr %zbase, %zat : tensor<64x128x!tt.ptr<f32>>, tensor<64x128xi32>
  %zeros = arith.constant dense<0.000000e+00> : tensor<64x128xf32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %sum = scf.for %i = %c0 to %steps step %c1 iter_args(%acc = %zeros) -> (tensor<64x128xf32>) : i32 {
    %x = tt.load %xp : tensor<64x32x!tt.ptr<f32>>
    %y = tt.load %yp : tensor<32x128x!tt.ptr<f32>>
    %d = tt.dot %x, %y, %acc : tensor<64x32xf32> * tensor<32x128xf32> -> tensor<64x128xf32>
    scf.yield %d : tensor<64x128xf32>
  }
  tt.store %zp, %sum : tensor<64x128x!tt.ptr<f32>>
  tt.return
}
tt.func public @columns(%a: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %b: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %c: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %steps: i32) {
  %xr = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %xc = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
  %xr2 = tt.expand_dims %xr {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %xc2 = tt.expand_dims %xc {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %xs = arith.constant dense<256> : tensor<64x1xi32>
  %xrs = arith.muli %xr2, %xs : tensor<64x1xi32>
  %xrb = tt.broadcast %xrs : tensor<64x1xi32> -> tensor<64x32xi32>
  %xcb = tt.broadcast %xc2 : tensor<1x32xi32> -> tensor<64x32xi32>
  %xat = arith.addi %xrb, %xcb : tensor<64x32xi32>
  %xbase = tt.splat %a : !tt.ptr<f32> -> tensor<64x32x!tt.ptr<f32>>
  %xp = tt.addptr %xbase, %xat : tensor<64x32x!tt.ptr<f32>>, tensor<64x32xi32>
  %yr = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
  %yc = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
  %yr2 = tt.expand_dims %yr {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
  %yc2 = tt.expand_dims %yc {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
  %ys = arith.constant dense<256> : tensor<1x128xi32>
  %ycs = arith.muli %yc2, %ys : tensor<1x128xi32>
  %yrb = tt.broadcast %yr2 : tensor<32x1xi32> -> tensor<32x128xi32>
  %ycb = tt.broadcast %ycs : tensor<1x128xi32> -> tensor<32x128xi32>
  %yat = arith.addi %yrb, %ycb : tensor<32x128xi32>
  %ybase = tt.splat %b : !tt.ptr<f32> -> tensor<32x128x!tt.ptr<f32>>
  %yp = tt.addptr %ybase, %yat : tensor<32x128x!tt.ptr<f32>>, tensor<32x128xi32>
  %zr = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %zc = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
  %zr2 = tt.expand_dims %zr {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %zc2 = tt.expand_dims %zc {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
  %zs = arith.constant dense<256> : tensor<64x1xi32>
  %zrs = arith.muli %zr2, %zs : tensor<64x1xi32>
  %zrb = tt.broadcast %zrs : tensor<64x1xi32> -> tensor<64x128xi32>
  %zcb = tt.broadcast %zc2 : tensor<1x128xi32> -> tensor<64x128xi32>
  %zat = arith.addi %zrb, %zcb : tensor<64x128xi32>
  %zbase = tt.splat %c : !tt.ptr<f32> -> tensor<64x128x!tt.ptr<f32>>
  %zp = tt.addptr %zbase, %zat : tensor<64x128x!tt.ptr<f32>>, tensor<64x128xi32>
  %zeros = arith.constant dense<0.000000e+00> : tensor<64x128xf32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %sum = scf.for %i = %c0 to %steps step %c1 iter_args(%acc = %zeros) -> (tensor<64x128xf32>) : i32 {
    %x = tt.load %xp : tensor<64x32x!tt.ptr<f32>>
    %y = tt.load %yp : tensor<32x128x!tt.ptr<f32>>
    %d = tt.dot %x, %y, %acc, inputPrecision = tf32 : tensor<64x32xf32> * tensor<32x128xf32> -> tensor<64x128xf32>
    scf.yield %d : tensor<64x128xf32>
  }
  tt.store %zp, %sum : tensor<64x128x!tt.ptr<f32>>
  tt.return
}
tt.func public @few(%a: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %b: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %c: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %steps: i32) {
  %xr = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %xc = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
  %xr2 = tt.expand_dims %xr {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %xc2 = tt.expand_dims %xc {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %xs = arith.constant dense<256> : tensor<64x1xi32>
  %xrs = arith.muli %xr2, %xs : tensor<64x1xi32>
  %xrb = tt.broadcast %xrs : tensor<64x1xi32> -> tensor<64x32xi32>
  %xcb = tt.broadcast %xc2 : tensor<1x32xi32> -> tensor<64x32xi32>
  %xat = arith.addi %xrb, %xcb : tensor<64x32xi32>
  %xbase = tt.splat %a : !tt.ptr<f32> -> tensor<64x32x!tt.ptr<f32>>
  %xp = tt.addptr %xbase, %xat : tensor<64x32x!tt.ptr<f32>>, tensor<64x32xi32>
  %yr = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
  %yc = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
  %yr2 = tt.expand_dims %yr {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
  %yc2 = tt.expand_dims %yc {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %ys = arith.constant dense<256> : tensor<32x1xi32>
  %yrs = arith.muli %yr2, %ys : tensor<32x1xi32>
  %yrb = tt.broadcast %yrs : tensor<32x1xi32> -> tensor<32x32xi32>
  %ycb = tt.broadcast %yc2 : tensor<1x32xi32> -> tensor<32x32xi32>
  %yat = arith.addi %yrb, %ycb : tensor<32x32xi32>
  %ybase = tt.splat %b : !tt.ptr<f32> -> tensor<32x32x!tt.ptr<f32>>
  %yp = tt.addptr %ybase, %yat : tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>
  %zr = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %zc = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
  %zr2 = tt.expand_dims %zr {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %zc2 = tt.expand_dims %zc {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %zs = arith.constant dense<256> : tensor<64x1xi32>
  %zrs = arith.muli %zr2, %zs : tensor<64x1xi32>
  %zrb = tt.broadcast %zrs : tensor<64x1xi32> -> tensor<64x32xi32>
  %zcb = tt.broadcast %zc2 : tensor<1x32xi32> -> tensor<64x32xi32>
  %zat = arith.addi %zrb, %zcb : tensor<64x32xi32>
  %zbase = tt.splat %c : !tt.ptr<f32> -> tensor<64x32x!tt.ptr<f32>>
  %zp = tt.addptr %zbase, %zat : tensor<64x32x!tt.ptr<f32>>, tensor<64x32xi32>
  %zeros = arith.constant dense<0.000000e+00> : tensor<64x32xf32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %sum = scf.for %i = %c0 to %steps step %c1 iter_args(%acc = %zeros) -> (tensor<64x32xf32>) : i32 {
    %x = tt.load %xp : tensor<64x32x!tt.ptr<f32>>
    %y = tt.load %yp : tensor<32x32x!tt.ptr<f32>>
    %d = tt.dot %x, %y, %acc, inputPrecision = tf32 : tensor<64x32xf32> * tensor<32x32xf32> -> tensor<64x32xf32>
    scf.yield %d : tensor<64x32xf32>
  }
  tt.store %zp, %sum : tensor<64x32x!tt.ptr<f32>>
  tt.return
}
}
