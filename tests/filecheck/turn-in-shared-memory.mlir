// RUN: mltriton opt %s -p "turn-in-shared-memory,dce" | filecheck %s
// What a dot takes transposed lies in shared memory as it is, in one place for both orders; not where K must lie along
// memory (bytes, or more than 16 rows a warp), and not where something else reads the block.
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#mma8 = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 32]}>
#here = #ttg.linear<{register = [[0, 1], [0, 2], [0, 4], [4, 0], [8, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[16, 0], [32, 0]], block = []}>
#there = #ttg.linear<{register = [[1, 0], [2, 0], [4, 0], [0, 4], [0, 8]], lane = [[8, 0], [16, 0], [32, 0], [0, 1], [0, 2]], warp = [[0, 16], [0, 32]], block = []}>
#along = #ttg.linear<{register = [[1, 0], [2, 0], [4, 0], [0, 4]], lane = [[8, 0], [16, 0], [32, 0], [0, 1], [0, 2]], warp = [[0, 8], [0, 16]], block = []}>
#across = #ttg.linear<{register = [[0, 1], [0, 2], [0, 4], [4, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[8, 0], [16, 0]], block = []}>
#down = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
#narrow = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
#mma128 = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [32, 64, 16]}>
#wide = #ttg.linear<{register = [[0, 1], [0, 2], [0, 4], [2, 0], [4, 0], [8, 0]], lane = [[0, 8], [0, 16], [0, 32], [0, 64], [1, 0]], warp = [[16, 0], [32, 0]], block = []}>
#tall = #ttg.linear<{register = [[1, 0], [2, 0], [4, 0], [0, 2], [0, 4], [0, 8]], lane = [[8, 0], [16, 0], [32, 0], [64, 0], [0, 1]], warp = [[0, 16], [0, 32]], block = []}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#turned = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 8}>
module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", mltriton.level = "ttg"} {
// CHECK-LABEL: @both
// CHECK: %[[M:.*]] = ttg.local_alloc %k
// CHECK-NEXT: %[[T:.*]] = ttg.memdesc_trans %[[M]]
// CHECK: tt.dot %{{.*}}, %[[T]], %{{.*}}
// CHECK: tt.dot %{{.*}}, %[[M]], %{{.*}}
// CHECK-NOT: tt.trans
// CHECK-LABEL: @columns
tt.func public @both(%a: !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable>, %k: tensor<64x64xf16, #here>, %zero: tensor<64x64xf32, #mma>) -> (tensor<64x64xf32, #mma>, tensor<64x64xf32, #mma>) {
  %t = tt.trans %k {order = array<i32: 1, 0>} : tensor<64x64xf16, #here> -> tensor<64x64xf16, #there>
  %tm = ttg.local_alloc %t : (tensor<64x64xf16, #there>) -> !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable>
  %s = tt.dot %a, %tm, %zero : !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable> * !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable> -> tensor<64x64xf32, #mma>
  %km = ttg.local_alloc %k : (tensor<64x64xf16, #here>) -> !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable>
  %d = tt.dot %a, %km, %zero : !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable> * !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable> -> tensor<64x64xf32, #mma>
  tt.return %s, %d : tensor<64x64xf32, #mma>, tensor<64x64xf32, #mma>
}

// CHECK: %[[M:.*]] = ttg.local_alloc %k {{.*}}memdesc<64x32xf16, #shared1,
// CHECK: tt.dot %{{.*}}, %[[M]], %{{.*}}
// CHECK: %[[T:.*]] = ttg.memdesc_trans %[[M]] : {{.*}} -> !ttg.memdesc<32x64xf16, #shared,
// CHECK: tt.dot %{{.*}}, %[[T]], %{{.*}}
// CHECK-LABEL: @bytes
tt.func public @columns(%a: !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable>, %p: !ttg.memdesc<64x32xf16, #narrow, #ttg.shared_memory, mutable>, %k: tensor<64x32xf16, #along>, %zero: tensor<64x64xf32, #mma>, %none: tensor<64x32xf32, #mma>) -> (tensor<64x32xf32, #mma>, tensor<64x64xf32, #mma>) {
  %km = ttg.local_alloc %k : (tensor<64x32xf16, #along>) -> !ttg.memdesc<64x32xf16, #down, #ttg.shared_memory, mutable>
  %s = tt.dot %a, %km, %none : !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable> * !ttg.memdesc<64x32xf16, #down, #ttg.shared_memory, mutable> -> tensor<64x32xf32, #mma>
  %t = tt.trans %k {order = array<i32: 1, 0>} : tensor<64x32xf16, #along> -> tensor<32x64xf16, #across>
  %tm = ttg.local_alloc %t : (tensor<32x64xf16, #across>) -> !ttg.memdesc<32x64xf16, #shared, #ttg.shared_memory, mutable>
  %d = tt.dot %p, %tm, %zero : !ttg.memdesc<64x32xf16, #narrow, #ttg.shared_memory, mutable> * !ttg.memdesc<32x64xf16, #shared, #ttg.shared_memory, mutable> -> tensor<64x64xf32, #mma>
  tt.return %s, %d : tensor<64x32xf32, #mma>, tensor<64x64xf32, #mma>
}

// CHECK: %[[B:.*]] = tt.trans
// CHECK: ttg.local_alloc %[[B]]
// CHECK-NOT: ttg.memdesc_trans
// CHECK-LABEL: @rows
tt.func public @bytes(%a: !ttg.memdesc<64x64xi8, #turned, #ttg.shared_memory, mutable>, %k: tensor<64x64xi8, #here>, %zero: tensor<64x64xi32, #mma8>) -> tensor<64x64xi32, #mma8> {
  %t = tt.trans %k {order = array<i32: 1, 0>} : tensor<64x64xi8, #here> -> tensor<64x64xi8, #there>
  %tm = ttg.local_alloc %t : (tensor<64x64xi8, #there>) -> !ttg.memdesc<64x64xi8, #turned, #ttg.shared_memory, mutable>
  %s = tt.dot %a, %tm, %zero : !ttg.memdesc<64x64xi8, #turned, #ttg.shared_memory, mutable> * !ttg.memdesc<64x64xi8, #turned, #ttg.shared_memory, mutable> -> tensor<64x64xi32, #mma8>
  tt.return %s : tensor<64x64xi32, #mma8>
}

// CHECK: %[[R:.*]] = tt.trans
// CHECK: ttg.local_alloc %[[R]]
// CHECK-NOT: ttg.memdesc_trans
// CHECK-LABEL: @loaded
tt.func public @rows(%k: tensor<64x128xf16, #wide>, %b: !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable>, %zero: tensor<128x64xf32, #mma128>) -> tensor<128x64xf32, #mma128> {
  %t = tt.trans %k {order = array<i32: 1, 0>} : tensor<64x128xf16, #wide> -> tensor<128x64xf16, #tall>
  %tm = ttg.local_alloc %t : (tensor<128x64xf16, #tall>) -> !ttg.memdesc<128x64xf16, #shared, #ttg.shared_memory, mutable>
  %s = tt.dot %tm, %b, %zero : !ttg.memdesc<128x64xf16, #shared, #ttg.shared_memory, mutable> * !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable> -> tensor<128x64xf32, #mma128>
  tt.return %s : tensor<128x64xf32, #mma128>
}

// CHECK: %[[L:.*]] = tt.trans
// CHECK: ttg.local_alloc %[[L]]
// CHECK-NOT: ttg.memdesc_trans
tt.func public @loaded(%k: tensor<64x64xf16, #here>) -> tensor<64x64xf16, #mma> {
  %t = tt.trans %k {order = array<i32: 1, 0>} : tensor<64x64xf16, #here> -> tensor<64x64xf16, #there>
  %tm = ttg.local_alloc %t : (tensor<64x64xf16, #there>) -> !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable>
  %l = ttg.local_load %tm : !ttg.memdesc<64x64xf16, #shared, #ttg.shared_memory, mutable> -> tensor<64x64xf16, #mma>
  tt.return %l : tensor<64x64xf16, #mma>
}
}
