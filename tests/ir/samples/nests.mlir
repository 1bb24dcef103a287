#blocked = #ttg.blocked<{sizePerWarp = [8, 16], warpsPerCTA = [1, 1], order = [1, 0]}>
#slice = #ttg.slice<{dim = 1, parent = #blocked}>
module attributes {mltriton.level = "warp"} {
  tt.func public @softmax(%x: tensor<8x16xf32, #blocked>, %at: tensor<8x16x!tt.ptr<f32>, #blocked>, %sums: tensor<8x!tt.ptr<f32>, #slice>) {
    %sum = tile.nest loops(0, 0, 1) -> (tensor<8xf32, #slice>) {
      %powers = math.exp2 %x : tensor<8x16xf32, #blocked>
      tile.fill %powers : tensor<8x16xf32, #blocked>
      %sum_0 = "tt.reduce"(%powers) <{axis = 1 : i32}> ({
      ^bb0(%a: f32, %b: f32):
        %c = arith.addf %a, %b : f32
        tt.reduce.return %c : f32
      }) : (tensor<8x16xf32, #blocked>) -> tensor<8xf32, #slice>
      tt.store %at, %powers : tensor<8x16x!tt.ptr<f32>, #blocked>
      tile.yield %sum_0 : tensor<8xf32, #slice>
    }
    tile.nest loops(0) {
      tt.store %sums, %sum : tensor<8x!tt.ptr<f32>, #slice>
    } {a.note = 1 : i32}
    tt.return
  }
  tt.func public @packed(%x: tensor<8x16xf32, #blocked>) {
    %0 = tile.pack %x {element = f32, in_place = true, near = 1024 : i32, panel = 8 : i32} : tensor<8x16xf32, #blocked>
    tt.return
  }
}
