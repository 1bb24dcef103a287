module {
  tt.func public @loops(%n: i32, %x: f32, %t: tensor<8xf32>, %c: i1) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    scf.for %i = %c0 to %n step %c1 : i32 {
      %0 = arith.addi %i, %n : i32
    }
    %acc, %v = scf.for %i_0 = %c0 to %n step %c1 iter_args(%acc_1 = %x, %v_2 = %t) -> (f32, tensor<8xf32>) : i32 {
      %1 = arith.addf %acc_1, %x : f32
      scf.yield %1, %v_2 : f32, tensor<8xf32>
    } {tt.loop_unroll_factor = 2 : i32, tt.num_stages = 3 : i32}
    %2 = arith.index_cast %n : i32 to index
    scf.for %j = %2 to %2 step %2 {
    }
    %3 = scf.if %c -> (f32) {
      scf.yield %acc : f32
    } else {
      scf.if %c {
        tt.print "deep"
      } else {
      }
      scf.if %c {
      }
      scf.yield %x : f32
    }
    %4:2 = scf.while (%k = %c0, %y = %3) : (i32, f32) -> (i32, f32) {
      %5 = arith.cmpi slt, %k, %n : i32
      scf.condition(%5) %k, %y : i32, f32
    } do {
    ^bb0(%k_3: i32, %y_4: f32):
      %6 = arith.addi %k_3, %c1 : i32
      scf.yield %6, %y_4 : i32, f32
    }
    scf.while : () -> () {
      scf.condition(%c)
    } do {
      scf.yield
    } attributes {note}
    tt.return
  }
}
