// Lines that break a rule of their operation, each with a part of the message that names the rule.

"arith.addi"(%i, %j) : (i32, i64) -> i32
// expected: operands and result have one type
"arith.addi"(%x, %x) : (f32, f32) -> f32
// expected: works on integers
"arith.addf"(%i, %i) : (i32, i32) -> i32
// expected: works on floats
"arith.addf"(%tf, %u) : (tensor<4xf32>, tensor<8xf32>) -> tensor<4xf32>
// expected: differ in shape or encoding
"arith.addf"(%t2, %te) : (tensor<4x4xf32>, tensor<4x4xf32, #blocked>) -> tensor<4x4xf32>
// expected: differ in shape or enc
"arith.negf"(%i) : (i32) -> i32
// expected: works on floats

"math.exp"(%i) : (i32) -> i32
// expected: works on floats
"math.absi"(%x) : (f32) -> f32
// expected: works on integers
"math.fma"(%x, %x, %h) : (f32, f32, f16) -> f32
// expected: operands and result have one type

"arith.cmpi"(%x, %x) <{predicate = 0 : i64}> : (f32, f32) -> i1
// expected: compares integers
"arith.cmpf"(%i, %i) <{predicate = 0 : i64}> : (i32, i32) -> i1
// expected: compares floats
"arith.cmpf"(%x, %h) <{predicate = 0 : i64}> : (f32, f16) -> i1
// expected: the right operand has another type
"arith.cmpi"(%i, %i) <{predicate = 0 : i64}> : (i32, i32) -> i32
// expected: the result has another type
"arith.select"(%i, %x, %x) : (i32, f32, f32) -> f32
// expected: the condition has another type
"arith.select"(%b, %x, %h) : (i1, f32, f16) -> f32
// expected: the other value has another type
"arith.select"(%b, %x, %x) : (i1, f32, f32) -> f16
// expected: the result has another type
"arith.extsi"(%j) : (i64) -> i32
// expected: the result must be wider
"arith.trunci"(%i) : (i32) -> i64
// expected: the result must be narrower
"arith.extf"(%x) : (f32) -> f32
// expected: the result must be wider
"arith.truncf"(%i) : (i32) -> f16
// expected: does not convert these types
"arith.extf"(%h) : (f16) -> tensor<4xf32>
// expected: converts scalars to scalars
"arith.sitofp"(%x) : (f32) -> f32
// expected: does not convert these types
"arith.fptosi"(%i) : (i32) -> i32
// expected: does not convert these types
"arith.bitcast"(%i) : (i32) -> f16
// expected: the result must be as wide
"arith.index_cast"(%x) : (f32) -> index
// expected: does not convert these types
"arith.constant"() <{value = 1 : i32}> : () -> i64
// expected: the result has another type
"arith.constant"() <{value = "text"}> : () -> i64
// expected: the value is no constant
"arith.constant"() : () -> i64
// expected: the value is no constant

"scf.if"(%i) ({ "scf.yield"() : () -> () }, {}) : (i32) -> ()
// expected: the condition has another type
"scf.if"(%b) ({ "scf.yield"(%x) : (f32) -> () }, {}) : (i1) -> f32
// expected: needs an else region
"scf.if"(%b) ({ "scf.yield"(%h) : (f16) -> () }, { "scf.yield"(%x) : (f32) -> () }) : (i1) -> f32
// expected: do not fit
"scf.if"(%b) ({ "arith.negf"(%h) : (f16) -> f16 }, {}) : (i1) -> ()
// expected: a region ends wrongly
"scf.for"(%x, %x, %x) ({ ^b(%c: f32): "scf.yield"() : () -> () }) : (f32, f32, f32) -> ()
// expected: bounds are integers
"scf.for"(%i, %j, %i) ({ ^b(%c: i32): "scf.yield"() : () -> () }) : (i32, i64, i32) -> ()
// expected: a bound has another
"scf.for"(%i, %i, %i) ({ ^b(%c: i64): "scf.yield"() : () -> () }) : (i32, i32, i32) -> ()
// expected: the body's arguments
"scf.for"(%i, %i, %i, %x) ({ ^b(%c: i32, %a: f32): "scf.yield"() : () -> () }) : (i32, i32, i32, f32) -> f32
// expected: yield
"scf.for"(%i, %i, %i, %x) ({ ^b(%c: i32, %a: f32): "scf.yield"(%a) : (f32) -> () }) : (i32, i32, i32, f32) -> ()
// expected: the results do not fit
"scf.while"(%i) ({ ^b(%a: i32): "scf.condition"(%b) : (i1) -> () }, { "scf.yield"() : () -> () }) : (i32) -> ()
// expected: the yielded values do not fit
"scf.while"() ({ "scf.condition"(%i) : (i32) -> () }, { "scf.yield"() : () -> () }) : () -> ()
// expected: the condition has
"scf.while"() ({ "scf.condition"(%b, %x) : (i1, f32) -> () }, { "scf.yield"() : () -> () }) : () -> ()
// expected: the values of scf.condition do not fit
"scf.yield"() : () -> ()
// expected: a terminator stands in the middle

"tt.call"(%x) <{callee = @callee}> : (f32) -> i32
// expected: the arguments do not fit
"tt.call"(%i) <{callee = @callee}> : (i32) -> f32
// expected: the results do not fit
"tt.call"(%i) <{callee = @nobody}> : (i32) -> i32
// expected: the callee is not defined
"tt.get_program_id"() : () -> i32
// expected: attribute axis is not given
"tt.get_program_id"() <{axis = 0 : i32}> : () -> i64
// expected: the result has another type
"tt.make_range"() <{start = 0 : i32}> : () -> tensor<4xi32>
// expected: attribute end is not given
"tt.make_range"() <{start = 4 : i32, end = 4 : i32}> : () -> tensor<4xi32>
// expected: the range is empty
"tt.make_range"() <{start = 0 : i32, end = 8 : i32}> : () -> tensor<4xi32>
// expected: the result has another size
"tt.make_range"() <{start = 0 : i32, end = 4 : i32}> : () -> tensor<4xi64>
// expected: an element has another type
"tt.make_range"() <{start = "0", end = 4 : i32}> : () -> tensor<4xi32>
// expected: attribute start is of another kind
"tt.assert"(%i) <{message = "m"}> : (i32) -> ()
// expected: an element of the condition has another type

"llvm.intr.assume"(%tb) : (tensor<4xi1>) -> ()
// expected: the condition has another type

"tt.splat"(%x) : (f32) -> tensor<4xf16>
// expected: an element of the result has another type
"tt.splat"(%x) : (f32) -> f32
// expected: the result is no block
"tt.unsplat"(%tf) : (tensor<4xf32>) -> f32
// expected: the source has several elements
"tt.unsplat"(%one) : (tensor<1xf32>) -> f16
// expected: the result has another type
"tt.expand_dims"(%tf) <{axis = 2 : i32}> : (tensor<4xf32>) -> tensor<4x1xf32>
// expected: the axis is out of range
"tt.expand_dims"(%tf) <{axis = 0 : i32}> : (tensor<4xf32>) -> tensor<4x1xf32>
// expected: the result has another type
"tt.expand_dims"(%tf) : (tensor<4xf32>) -> tensor<4x1xf32>
// expected: the axis is out of range
"tt.broadcast"(%tf) : (tensor<4xf32>) -> tensor<8xf32>
// expected: only dimensions of size 1 grow
"tt.broadcast"(%one) : (tensor<1xf32>) -> tensor<8xf16>
// expected: an element of the result has another type
"tt.broadcast"(%one) : (tensor<1xf32>) -> tensor<1x8xf32>
// expected: only dimensions of size 1 grow
"tt.reshape"(%tf) : (tensor<4xf32>) -> tensor<8xf32>
// expected: the number of elements changes
"tt.trans"(%t2) <{order = array<i32: 0, 0>}> : (tensor<4x4xf32>) -> tensor<4x4xf32>
// expected: order is no permutation
"tt.trans"(%t2) <{order = array<i32: 1, 0>}> : (tensor<4x4xf32>) -> tensor<4x2xf32>
// expected: the result has another type
"tt.join"(%tf, %u) : (tensor<4xf32>, tensor<8xf32>) -> tensor<4x2xf32>
// expected: the right operand has another type
"tt.join"(%tf, %tf) : (tensor<4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
// expected: the result has another type
"tt.split"(%tf) : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>)
// expected: the last dimension has size 2
"tt.cat"(%tf, %ti) : (tensor<4xf32>, tensor<4xi32>) -> tensor<8xf32>
// expected: differ in more than dimension 0
"tt.cat"(%tf, %tf) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// expected: the result has another type
"tt.gather"(%tf, %tf) <{axis = 0 : i32}> : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// expected: indices are integers
"tt.gather"(%tf, %ti) <{axis = 1 : i32}> : (tensor<4xf32>, tensor<4xi32>) -> tensor<4xf32>
// expected: the axis is out of
"tt.gather"(%tf, %ti) <{axis = 0 : i32}> : (tensor<4xf32>, tensor<4xi32>) -> tensor<8xf32>
// expected: result has another
"tt.addptr"(%tf, %ti) : (tensor<4xf32>, tensor<4xi32>) -> tensor<4xf32>
// expected: works on pointers
"tt.addptr"(%p, %x) : (!tt.ptr<f32>, f32) -> !tt.ptr<f32>
// expected: the offset is an integer
"tt.addptr"(%p, %ti) : (!tt.ptr<f32>, tensor<4xi32>) -> !tt.ptr<f32>
// expected: are scalars or blocks
"tt.addptr"(%p, %i) : (!tt.ptr<f32>, i32) -> !tt.ptr<f16>
// expected: the result has another type
"tt.load"(%i) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (i32) -> i32
// expected: works on pointers
"tt.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!tt.ptr<f32>) -> i32
// expected: the value has another type
"tt.load"(%p, %tb) <{operandSegmentSizes = array<i32: 1, 1, 0>}> : (!tt.ptr<f32>, tensor<4xi1>) -> f32
// expected: the mask
"tt.load"(%p, %x) <{operandSegmentSizes = array<i32: 1, 0, 1>}> : (!tt.ptr<f32>, f32) -> f32
// expected: needs a mask
"tt.load"(%p, %b, %h) <{operandSegmentSizes = array<i32: 1, 1, 1>}> : (!tt.ptr<f32>, i1, f16) -> f32
// expected: other has
"tt.load"(%bp, %b) <{operandSegmentSizes = array<i32: 1, 1, 0>}> : (!tt.ptr<tensor<4x4xf32>>, i1) -> tensor<4x4xf32>
// expected: a block pointer takes no mask
"tt.load"(%bp) <{boundaryCheck = array<i32: 2>, operandSegmentSizes = array<i32: 1, 0, 0>}> : (!tt.ptr<tensor<4x4xf32>>) -> tensor<4x4xf32>
// expected: the axis is out of range
"tt.load"(%p) <{boundaryCheck = array<i32: 0>, operandSegmentSizes = array<i32: 1, 0, 0>}> : (!tt.ptr<f32>) -> f32
// expected: boundary checks need a block pointer
"tt.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>, isVolatile = "yes"}> : (!tt.ptr<f32>) -> f32
// expected: kind
"tt.store"(%p, %h) : (!tt.ptr<f32>, f16) -> ()
// expected: the value has another type
"tt.atomic_rmw"(%p, %x) <{atomic_rmw_op = 4 : i32}> : (!tt.ptr<f32>, f32) -> f32
// expected: does not work on these elements
"tt.atomic_rmw"(%q, %i) <{atomic_rmw_op = 5 : i32}> : (!tt.ptr<i32>, i32) -> i32
// expected: does not work on these elements
"tt.atomic_rmw"(%q, %j) <{atomic_rmw_op = 4 : i32}> : (!tt.ptr<i32>, i64) -> i64
// expected: the value has another type
"tt.atomic_cas"(%q, %i, %j) : (!tt.ptr<i32>, i32, i64) -> i32
// expected: the value has another type
"tt.make_tensor_ptr"(%p, %j, %j, %i) <{operandSegmentSizes = array<i32: 1, 1, 1, 1>, order = array<i32: 0>}> : (!tt.ptr<f32>, i64, i64, i32) -> !tt.ptr<f32>
// expected: the result points to no block
"tt.make_tensor_ptr"(%p, %j, %j, %i) <{operandSegmentSizes = array<i32: 1, 1, 1, 1>, order = array<i32: 0>}> : (!tt.ptr<f32>, i64, i64, i32) -> !tt.ptr<tensor<4x4xf32>>
// expected: the sizes do not fit
"tt.make_tensor_ptr"(%p, %j, %j, %i) <{operandSegmentSizes = array<i32: 1, 1, 1, 1>, order = array<i32: 1>}> : (!tt.ptr<f32>, i64, i64, i32) -> !tt.ptr<tensor<4xf32>>
// expected: order is no permutation
"tt.make_tensor_ptr"(%p, %i, %j, %i) <{operandSegmentSizes = array<i32: 1, 1, 1, 1>, order = array<i32: 0>}> : (!tt.ptr<f32>, i32, i64, i32) -> !tt.ptr<tensor<4xf32>>
// expected: the sizes do not fit
"tt.advance"(%p, %i) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
// expected: advances block pointers
"tt.advance"(%bp, %i) : (!tt.ptr<tensor<4x4xf32>>, i32) -> !tt.ptr<tensor<4x4xf32>>
// expected: the offsets do not fit
"tt.make_tensor_descriptor"(%p, %i, %j) <{operandSegmentSizes = array<i32: 1, 1, 1>}> : (!tt.ptr<f32>, i32, i64) -> !tt.tensordesc<tensor<4xf16>>
// expected: an element of the block has another type
"tt.make_tensor_descriptor"(%p, %j, %j) <{operandSegmentSizes = array<i32: 1, 1, 1>}> : (!tt.ptr<f32>, i64, i64) -> !tt.tensordesc<tensor<4xf32>>
// expected: the sizes do not fit
"tt.descriptor_load"(%d, %i) : (!tt.tensordesc<tensor<4x4xf32>>, i32) -> tensor<4x4xf32>
// expected: the indices do not fit
"tt.descriptor_load"(%d, %i, %i) : (!tt.tensordesc<tensor<4x4xf32>>, i32, i32) -> tensor<8x4xf32>
// expected: the block is not
"tt.descriptor_load"(%p, %i, %i) : (!tt.ptr<f32>, i32, i32) -> tensor<4x4xf32>
// expected: the descriptor is none
"tt.descriptor_store"(%d, %half, %i, %i) : (!tt.tensordesc<tensor<4x4xf32>>, tensor<4x4xf16>, i32, i32) -> ()
// expected: the block is not the descriptor's
"tt.dot"(%t2, %tf, %t2) : (tensor<4x4xf32>, tensor<4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
// expected: rank 2 or 3
"tt.dot"(%t2, %half, %t2) : (tensor<4x4xf32>, tensor<4x4xf16>, tensor<4x4xf32>) -> tensor<4x4xf32>
// expected: the operands have one type, or 8 bits
"tt.dot"(%t2, %t2, %t2) <{a_unsigned = true}> : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
// expected: a_unsigned is for integers of 8 bits
"tt.dot"(%t2, %t2, %t2) : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf16>
// expected: the result has
"tt.reduce"(%tf) <{axis = 1 : i32}> ({ ^b(%a: f32, %c: f32): "tt.reduce.return"(%a) : (f32) -> () }) : (tensor<4xf32>) -> f32
// expected: the axis is out of range
"tt.reduce"(%tf) <{axis = 0 : i32}> ({ ^b(%a: f32): "tt.reduce.return"(%a) : (f32) -> () }) : (tensor<4xf32>) -> f32
// expected: the region's arguments do not fit
"tt.reduce"(%tf) <{axis = 0 : i32}> ({ ^b(%a: f32, %c: f32): "tt.reduce.return"() : () -> () }) : (tensor<4xf32>) -> f32
// expected: the region's results do not fit
"tt.reduce"(%tf, %u) <{axis = 0 : i32}> ({ ^b(%a: f32, %c: f32, %e: f32, %f: f32): "tt.reduce.return"(%a, %c) : (f32, f32) -> () }) : (tensor<4xf32>, tensor<8xf32>) -> (f32, f32)
// expected: the sources differ in shape
"tt.reduce"(%t2) <{axis = 0 : i32}> ({ ^b(%a: f32, %c: f32): "tt.reduce.return"(%a) : (f32) -> () }) : (tensor<4x4xf32>) -> tensor<8xf32>
// expected: the result has another type
"tt.scan"(%tf) <{axis = 0 : i32}> ({ ^b(%a: f32, %c: f32): "tt.scan.return"(%a) : (f32) -> () }) : (tensor<4xf32>) -> tensor<8xf32>
// expected: the results do not fit
"tt.bitcast"(%i) : (i32) -> i64
// expected: the result must be as wide
"tt.int_to_ptr"(%x) : (f32) -> !tt.ptr<f32>
// expected: does not convert these types
"tt.ptr_to_int"(%p) : (!tt.ptr<f32>) -> i32
// expected: the result must be as wide
"tt.fp_to_fp"(%i) : (i32) -> f16
// expected: does not convert these types
"tt.mulhiui"(%x, %x) : (f32, f32) -> f32
// expected: works on integers
"tt.clampf"(%x, %x, %h) : (f32, f32, f16) -> f32
// expected: operands and result have one type

"gpu.subgroup_id"() : () -> i32
// expected: the result has another type

"ttg.convert_layout"(%te) : (tensor<4x4xf32, #blocked>) -> tensor<4x4xf16>
// expected: only the encoding changes
"ttg.local_alloc"(%tf) : (tensor<4xf32>) -> !ttg.memdesc<4x4xf32, #ttg.shared_memory>
// expected: does not fit the memory
"ttg.local_load"(%mem) : (!ttg.memdesc<4x4xf32, #ttg.shared_memory>) -> tensor<4xf32>
// expected: does not fit the memory
"ttg.local_store"(%t2, %mem) : (tensor<4x4xf32>, !ttg.memdesc<4x4xf32, #ttg.shared_memory>) -> ()
// expected: be written
"ttg.local_gather"(%mem, %t2) <{axis = 0 : i32}> : (!ttg.memdesc<4x4xf32, #ttg.shared_memory>, tensor<4x4xf32>) -> tensor<4x4xf32>
// expected: the indices are integers
"ttg.memdesc_subview"(%mem, %i) : (!ttg.memdesc<4x4xf32, #ttg.shared_memory>, i32) -> !ttg.memdesc<4x4xf32, #ttg.shared_memory>
// expected: the offsets do not fit
"ttg.memdesc_subview"(%mem, %i, %i) : (!ttg.memdesc<4x4xf32, #ttg.shared_memory>, i32, i32) -> !ttg.memdesc<8xf32, #ttg.shared_memory>
// expected: the result is no window
"ttg.memdesc_trans"(%mem) : (!ttg.memdesc<4x4xf32, #ttg.shared_memory>) -> !ttg.memdesc<4x2xf32, #ttg.shared_memory>
// expected: not the transposed source
"ttg.cross_warp_reduce"() ({ ^b(): "tt.reduce.return"() : () -> () }) : () -> ()
// expected: there is nothing to combine
"ttg.cross_warp_reduce"(%x) <{dst_warps = array<i32: 1, 1>}> ({ ^b(%a: f32, %c: f32): "tt.reduce.return"(%a) : (f32) -> () }) : (f32) -> f32
// expected: dst_warps lists ids of warps
"ttg.cross_warp_reduce"(%x) <{dst_warps = array<i32: -1>}> ({ ^b(%a: f32, %c: f32): "tt.reduce.return"(%a) : (f32) -> () }) : (f32) -> f32
// expected: dst_warps lists ids of warps
"ttg.cross_warp_reduce"(%tf, %u) ({ ^b(%a: f32, %c: f32, %e: f32, %f: f32): "tt.reduce.return"(%a, %c) : (f32, f32) -> () }) : (tensor<4xf32>, tensor<8xf32>) -> (tensor<4xf32>, tensor<8xf32>)
// expected: the sources differ in shape
"ttg.cross_warp_reduce"(%tf) ({ ^b(%a: f32, %c: f32): "tt.reduce.return"(%a) : (f32) -> () }) : (tensor<4xf32>) -> f32
// expected: the results
"ttg.cross_warp_reduce"(%h) ({ ^b(%a: f32, %c: f32): "tt.reduce.return"(%a) : (f32) -> () }) : (f16) -> f16
// expected: the region's arguments
"ttg.cross_warp_reduce"(%p) ({ ^b(%a: !tt.ptr<f32>, %c: !tt.ptr<f32>): "tt.reduce.return"(%a) : (!tt.ptr<f32>) -> () }) : (!tt.ptr<f32>) -> !tt.ptr<f32>
// expected: only numbers cross warps
"ttg.cross_warp_scan"(%x) ({ ^b(%a: f32, %c: f32): "tt.scan.return"() : () -> () }) : (f32) -> f32
// expected: the region's results
"ttg.async_copy_global_to_local"(%t2, %mem) <{operandSegmentSizes = array<i32: 1, 1, 0, 0>}> : (tensor<4x4xf32>, !ttg.memdesc<4x4xf32, #ttg.shared_memory>) -> !ttg.async.token
// expected: copies through pointers

"ttig.extract"(%t2) <{index = 4 : i32}> : (tensor<4x4xf32>) -> tensor<2x2xf32>
// expected: no such piece
"ttig.extract"(%t2) <{index = 0 : i32}> : (tensor<4x4xf32>) -> tensor<3x4xf32>
// expected: does not divide the block
"ttig.extract"(%t2) : (tensor<4x4xf32>) -> tensor<2x2xf32>
// expected: attribute index is not given
"ttig.glue"(%tf, %tf) : (tensor<4xf32>, tensor<4xf32>) -> tensor<16xf32>
// expected: another number of pieces
"ttig.glue"(%tf, %u) : (tensor<4xf32>, tensor<8xf32>) -> tensor<12xf32>
// expected: a piece has another type

"tile.fill"(%tf) : (tensor<4xf32>) -> ()
// expected: stored by the loops of a tile.nest
"tile.nest"() <{loops = array<i32: 0>}> ({ "tile.fill"(%tf) : (tensor<4xf32>) -> () "tile.yield"(%tf) : (tensor<4xf32>) -> () }) : () -> ()
// expected: the yielded values
"tile.nest"() <{loops = array<i32: 1>}> ({ "tile.fill"(%tf) : (tensor<4xf32>) -> () "tile.yield"() : () -> () }) : () -> ()
// expected: numbered from 0
"tile.nest"() <{loops = array<i32>}> ({ "tile.yield"() : () -> () }) : () -> ()
// expected: numbered from 0
"tile.nest"() <{loops = array<i32: 0>}> ({ %product = "tt.dot"(%t2, %t2, %t2) : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> "tile.yield"() : () -> () }) : () -> ()
// expected: stands outside of nests
"tile.nest"() <{loops = array<i32: 0, 0>, along = 0 : i32}> ({ "tile.yield"() : () -> () }) : () -> ()
// expected: shares no loops
"tile.pack"(%t2) : (tensor<4x4xf32>) -> tensor<4x4xf32>
// expected: attribute element is not given
"tile.pack"(%tf) <{element = f32}> : (tensor<4xf32>) -> tensor<4xf32>
// expected: a matrix is packed
"tile.pack"(%t2) <{element = f32, group = 3 : i32}> : (tensor<4x4xf32>) -> tensor<4x4xf32>
// expected: groups divide the rows
"tile.pack"(%t2) <{element = f32, panel = 3 : i32}> : (tensor<4x4xf32>) -> tensor<4x4xf32>
// expected: panels divide the columns
"tile.pack"(%t2) <{element = bf16, in_place = true}> : (tensor<4x4xf32>) -> tensor<4x4xf32>
// expected: read from a copy
"tile.pack"(%t2) <{element = f32, near = 64 : i32}> : (tensor<4x4xf32>) -> tensor<4x4xf32>
// expected: when a block is read in place
"tile.scratch"() <{offset = 8 : i32, bytes = 64 : i32}> : () -> !tt.ptr<f32, 5>
// expected: a multiple of 64
"tile.scratch"() <{offset = 64 : i32, bytes = 64 : i32}> : () -> !tt.ptr<f32>
// expected: thread-private
"tile.scratch"() <{offset = 64 : i32}> : () -> !tt.ptr<f32, 5>
// expected: attribute bytes is not given
"tile.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!tt.ptr<f32>) -> tensor<4x4xf32>
// expected: one dimension
"tile.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!tt.ptr<f32>) -> tensor<4xf16>
// expected: points to has
"tile.store"(%p, %tf, %b) : (!tt.ptr<f32>, tensor<4xf32>, i1) -> ()
// expected: the mask has another type
"tile.transpose"(%tf, %tf, %tf) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
// expected: as many rows as
"tile.interleave"(%tf) : (tensor<4xf32>) -> tensor<4xf32>
// expected: interleaves pairs or quads
"tile.interleave"(%tf, %tf) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// expected: the result has another type
"tile.lane"(%tf, %j) : (tensor<4xf32>, i64) -> f32
// expected: the index has another type
"tile.dot"(%p, %j, %p, %j, %s, %j, %j, %b) <{m = 4 : i32}> : (!tt.ptr<f32>, i64, !tt.ptr<f32>, i64, !tt.ptr<f32, 5>, i64, i64, i1) -> ()
// expected: attribute n is not given
"tile.dot"(%p, %j, %p, %j, %s, %j, %j, %b) <{m = 4 : i32, n = 4 : i32, group = 2 : i32, a_layout = 1 : i32}> : (!tt.ptr<f32>, i64, !tt.ptr<f32>, i64, !tt.ptr<f32, 5>, i64, i64, i1) -> ()
// expected: a column layout has no groups
"tile.dot"(%p, %j, %p, %j, %s, %j, %j, %b) <{m = 4 : i32, n = 4 : i32, b_unsigned}> : (!tt.ptr<f32>, i64, !tt.ptr<f32>, i64, !tt.ptr<f32, 5>, i64, i64, i1) -> ()
// expected: b_unsigned is for integers of 8 bits
"tile.indirect_dot"(%p, %j, %j, %p, %s, %j, %j, %b) <{m = 4 : i32, n = 4 : i32, k = 4 : i32}> : (!tt.ptr<f32>, i64, i64, !tt.ptr<f32>, !tt.ptr<f32, 5>, i64, i64, i1) -> ()
// expected: lines are pointers
"tile.dot"(%p, %i, %p, %j, %s, %j, %j, %b) <{m = 4 : i32, n = 4 : i32}> : (!tt.ptr<f32>, i32, !tt.ptr<f32>, i64, !tt.ptr<f32, 5>, i64, i64, i1) -> ()
// expected: a's stride has another type
"tile.prefetch"(%i) : (i32) -> ()
// expected: the address is no pointer

"ttng.tensor_map"(%p, %i, %i, %j, %j) <{operandSegmentSizes = array<i32: 1, 2, 2, 0, 0>}> : (!tt.ptr<f32>, i32, i32, i64, i64) -> !tt.tensordesc<tensor<4x4xf32>>
// expected: the sizes
"ttng.init_barrier"(%mem) <{count = 1 : i32}> : (!ttg.memdesc<4x4xf32, #ttg.shared_memory>) -> ()
// expected: a barrier is one i64 in shared memory
"ttng.wait_barrier"(%mem, %i) : (!ttg.memdesc<4x4xf32, #ttg.shared_memory>, i32) -> ()
// expected: a barrier is one i64 in shared memory
"ttng.init_barrier"(%one) <{count = 1 : i32}> : (tensor<1xf32>) -> ()
// expected: the barrier is no block in shared memory
"ttng.async_tma_copy_local_to_global"(%d, %i, %mem) <{operandSegmentSizes = array<i32: 1, 1, 1, 0>}> : (!tt.tensordesc<tensor<4x4xf32>>, i32, !ttg.memdesc<4x4xf32, #ttg.shared_memory>) -> ()
// expected: the indices
"ttg.warp_specialize"() <{num_warps = 0 : i32}> ({ ttg.warp_yield }, { ttg.warp_return }) : () -> ()
// expected: a partition has warps
