; The launcher of CUDA kernels, by the guards and slots of sources/launcher.py. Nothing here waits, allocates memory of the GPU or
; touches the interpreter's objects while the driver works: launches go into CUDA graphs, and other threads go on.

; What the function object's `self`, a tuple, has: a bytes object with a %CudaTable, its %Param records and then its maps; a
; callable (device) -> stream; the device's number; a callable (status, grid x, y, z) that raises; two callables with the
; launcher's own arguments, for launches of which a tensor map cannot be made, and for those of as many programs as the
; table says.
; function, context, threads, bytes of shared memory, parameters, slots, an address that is a last parameter (0: none), how
; many tensor maps are parameters in front of it, where the launch's attributes are, and how many; launches of more programs
; than the next number, and at most the one after it, are made by another kernel; where the next is none of 0 so many programs
; along x do the work of all, in rounds, and the last parameter is how many x has; the device's number
%CudaTable = type { ptr, ptr, i32, i32, i32, i32, i64, i64, ptr, i64, i64, i64, i64, i64 }

; The driver's CUlaunchConfig: sizes of the grid and of a program, bytes of shared memory, stream, attributes and their number
%Config = type { i32, i32, i32, i32, i32, i32, i32, ptr, ptr, i32 }

; A tensor map to be made for each launch: the slot of its base, the type of its elements, the number of its dimensions, how
; it is swizzled, how many of its numbers must be positive, how many slots must not hold its base, the bytes of an element where
; blocks are stored through it (0: they are not), for which its rows must end at a multiple of 16 bytes, and its box. After
; the record come these slots and its numbers: those that must be positive, by how many bytes the base is moved, sizes, and strides of all dimensions but the first. A number is how many terms it is the sum of, then of each term a
; factor, how many slots it is multiplied by, and these: twice their numbers, and one more for a slot of 64 bits.
%Map = type { i32, i32, i32, i32, i32, i32, i32, [5 x i32] }

; Set from Python: the driver's functions.

@cu_launch_kernel = global ptr null
@cu_launch_kernel_ex = global ptr null
@cu_ctx_get_current = global ptr null
@cu_ctx_push_current = global ptr null
@cu_ctx_pop_current = global ptr null
@cu_tensor_map_encode = global ptr null

@ones = internal constant [5 x i32] [i32 1, i32 1, i32 1, i32 1, i32 1]
@refusal = internal constant [5 x i8] c"iLLL\00"

declare ptr @PyObject_CallFunction(ptr, ptr, ...)

; Computes the number at a cursor, which it moves behind that.
define internal i64 @take_number(ptr %cursor.at, ptr %slots) #2 {
entry:
  %start = load ptr, ptr %cursor.at
  %terms = load i64, ptr %start
  %first = getelementptr i64, ptr %start, i64 1
  br label %look
look:
  %left = phi i64 [ %terms, %entry ], [ %left.next, %add ]
  %at = phi ptr [ %first, %entry ], [ %place, %add ]
  %sum = phi i64 [ 0, %entry ], [ %sum.next, %add ]
  %more = icmp ne i64 %left, 0
  br i1 %more, label %term, label %done
term:
  %factor = load i64, ptr %at
  %count.at = getelementptr i64, ptr %at, i64 1
  %count = load i64, ptr %count.at
  %place.first = getelementptr i64, ptr %at, i64 2
  br label %multiply
multiply:
  %places = phi i64 [ %count, %term ], [ %places.next, %by ]
  %place = phi ptr [ %place.first, %term ], [ %place.next, %by ]
  %product = phi i64 [ %factor, %term ], [ %product.next, %by ]
  %more.places = icmp ne i64 %places, 0
  br i1 %more.places, label %by, label %add
by:
  %code = load i64, ptr %place
  %number = lshr i64 %code, 1
  %slot = getelementptr i64, ptr %slots, i64 %number
  %word = load i64, ptr %slot
  %low = trunc i64 %word to i32
  %narrow = sext i32 %low to i64
  %wide.bit = and i64 %code, 1
  %is.wide = icmp ne i64 %wide.bit, 0
  %value = select i1 %is.wide, i64 %word, i64 %narrow
  %product.next = mul i64 %product, %value
  %places.next = sub i64 %places, 1
  %place.next = getelementptr i64, ptr %place, i64 1
  br label %multiply
add:
  %sum.next = add i64 %sum, %product
  %left.next = sub i64 %left, 1
  br label %look
done:
  store ptr %at, ptr %cursor.at
  ret i64 %sum
}

; Computes so many numbers into an array.
define internal void @take_numbers(ptr %cursor.at, ptr %slots, i64 %count, ptr %into) #2 {
entry:
  br label %look
look:
  %i = phi i64 [ 0, %entry ], [ %next, %take ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %take, label %done
take:
  %value = call i64 @take_number(ptr %cursor.at, ptr %slots)
  %value.at = getelementptr i64, ptr %into, i64 %i
  store i64 %value, ptr %value.at
  %next = add i64 %i, 1
  br label %look
done:
  ret void
}

; Makes a map of 128 bytes of the record at a cursor, which it moves behind that. Returns the driver's status.
define internal i32 @make_map(ptr %cursor.at, ptr %slots, ptr %map) #2 {
entry:
  %sizes = alloca [5 x i64]
  %strides = alloca [5 x i64]
  %record = load ptr, ptr %cursor.at
  %base.slot.32 = load i32, ptr %record
  %kind.at = getelementptr %Map, ptr %record, i32 0, i32 1
  %kind = load i32, ptr %kind.at
  %rank.at = getelementptr %Map, ptr %record, i32 0, i32 2
  %rank = load i32, ptr %rank.at
  %swizzle.at = getelementptr %Map, ptr %record, i32 0, i32 3
  %swizzle = load i32, ptr %swizzle.at
  %positive.at = getelementptr %Map, ptr %record, i32 0, i32 4
  %positive.32 = load i32, ptr %positive.at
  %positive = zext i32 %positive.32 to i64
  %apart.at = getelementptr %Map, ptr %record, i32 0, i32 5
  %apart.32 = load i32, ptr %apart.at
  %apart = zext i32 %apart.32 to i64
  %stored.at = getelementptr %Map, ptr %record, i32 0, i32 6
  %stored.32 = load i32, ptr %stored.at
  %stored = zext i32 %stored.32 to i64
  %box = getelementptr %Map, ptr %record, i32 0, i32 7
  %others = getelementptr %Map, ptr %record, i64 1
  %numbers = getelementptr i64, ptr %others, i64 %apart
  store ptr %numbers, ptr %cursor.at
  %base.slot = zext i32 %base.slot.32 to i64
  %base.at = getelementptr i64, ptr %slots, i64 %base.slot
  %base = load i64, ptr %base.at
  br label %compare
compare:
  %j = phi i64 [ 0, %entry ], [ %j.next, %other ]
  %more.others = icmp ult i64 %j, %apart
  br i1 %more.others, label %other, label %look
other:
  %other.at = getelementptr i64, ptr %others, i64 %j
  %other.slot = load i64, ptr %other.at
  %other.base.at = getelementptr i64, ptr %slots, i64 %other.slot
  %other.base = load i64, ptr %other.base.at
  %j.next = add i64 %j, 1
  %is.same = icmp eq i64 %other.base, %base
  br i1 %is.same, label %refuse, label %compare
look:
  %i = phi i64 [ 0, %compare ], [ %next, %ask ]
  %more = icmp ult i64 %i, %positive
  br i1 %more, label %ask, label %make
ask:
  %number = call i64 @take_number(ptr %cursor.at, ptr %slots)
  %next = add i64 %i, 1
  %is.positive = icmp sgt i64 %number, 0
  br i1 %is.positive, label %look, label %refuse
refuse:
  ret i32 1
make:
  %shift = call i64 @take_number(ptr %cursor.at, ptr %slots)
  %rank.64 = zext i32 %rank to i64
  %strides.count = sub i64 %rank.64, 1
  call void @take_numbers(ptr %cursor.at, ptr %slots, i64 %rank.64, ptr %sizes)
  call void @take_numbers(ptr %cursor.at, ptr %slots, i64 %strides.count, ptr %strides)
  %columns = load i64, ptr %sizes
  %row = mul i64 %columns, %stored
  %beside = and i64 %row, 15
  %is.whole = icmp eq i64 %beside, 0
  br i1 %is.whole, label %encode.map, label %refuse
encode.map:
  %address = add i64 %base, %shift
  %pointer = inttoptr i64 %address to ptr
  %encode = load ptr, ptr @cu_tensor_map_encode
  %status = call i32 %encode(ptr %map, i32 %kind, i32 %rank, ptr %pointer, ptr %sizes, ptr %strides, ptr %box, ptr @ones,
                             i32 0, i32 %swizzle, i32 3, i32 0)
  ret i32 %status
}

; Makes all maps, and an array of pointers to them. Returns the first status that is none of success.
define internal i32 @make_maps(ptr %records, i64 %count, ptr %slots, ptr %maps, ptr %pointers) #2 {
entry:
  %cursor.at = alloca ptr
  store ptr %records, ptr %cursor.at
  br label %look
look:
  %i = phi i64 [ 0, %entry ], [ %next, %made ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %make, label %done
make:
  %map = getelementptr [128 x i8], ptr %maps, i64 %i
  %status = call i32 @make_map(ptr %cursor.at, ptr %slots, ptr %map)
  %is.made = icmp eq i32 %status, 0
  br i1 %is.made, label %made, label %failed
made:
  %pointer.at = getelementptr ptr, ptr %pointers, i64 %i
  store ptr %map, ptr %pointer.at
  %next = add i64 %i, 1
  br label %look
done:
  ret i32 0
failed:
  ret i32 %status
}

; Makes them in the function's context, without which the driver makes none: a thread may have another, or none yet.
define internal i32 @make_maps_there(ptr %table, ptr %records, i64 %count, ptr %slots, ptr %maps, ptr %pointers) #0 {
entry:
  %current.at = alloca ptr
  store ptr null, ptr %current.at
  %context.at = getelementptr %CudaTable, ptr %table, i32 0, i32 1
  %context = load ptr, ptr %context.at
  %is.empty = icmp eq i64 %count, 0
  br i1 %is.empty, label %here, label %ask
ask:
  %get = load ptr, ptr @cu_ctx_get_current
  %ignored = call i32 %get(ptr %current.at)
  %current = load ptr, ptr %current.at
  %is.current = icmp eq ptr %current, %context
  br i1 %is.current, label %here, label %enter
here:
  %status = call i32 @make_maps(ptr %records, i64 %count, ptr %slots, ptr %maps, ptr %pointers)
  ret i32 %status
enter:
  %push = load ptr, ptr @cu_ctx_push_current
  %refused = call i32 %push(ptr %context)
  %entered = icmp eq i32 %refused, 0
  br i1 %entered, label %there, label %failed
there:
  %status.there = call i32 @make_maps(ptr %records, i64 %count, ptr %slots, ptr %maps, ptr %pointers)
  %pop = load ptr, ptr @cu_ctx_pop_current
  %ignored.too = call i32 %pop(ptr %current.at)
  ret i32 %status.there
failed:
  ret i32 %refused
}

; Makes an array of pointers to so many slots.
define internal void @point_to_slots(ptr %slots, i64 %count, ptr %pointers) #2 {
entry:
  br label %look
look:
  %i = phi i64 [ 0, %entry ], [ %next, %point ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %point, label %done
point:
  %slot = getelementptr i64, ptr %slots, i64 %i
  %pointer.at = getelementptr ptr, ptr %pointers, i64 %i
  store ptr %slot, ptr %pointer.at
  %next = add i64 %i, 1
  br label %look
done:
  ret void
}

; Asks for the stream of launches. A status as in sources/arguments.py: 1 where the answer is no number.
define internal i32 @find_stream(ptr %self, ptr %table, ptr %out) #2 {
entry:
  %current = load ptr, ptr @torch_stream
  %is.unknown = icmp eq ptr %current, null
  br i1 %is.unknown, label %call, label %look
look:
  %number.at = getelementptr %CudaTable, ptr %table, i32 0, i32 13
  %number = load i32, ptr %number.at
  %refused = call i32 %current(i32 %number, ptr %out)
  %is.found = icmp eq i32 %refused, 0
  br i1 %is.found, label %found, label %call
found:
  ret i32 0
call:
  %ask = call ptr @at(ptr %self, i64 1)
  %device = call ptr @at(ptr %self, i64 2)
  %answer = call ptr @PyObject_CallOneArg(ptr %ask, ptr %device)
  %failed = icmp eq ptr %answer, null
  br i1 %failed, label %raise, label %convert
convert:
  %status = call i32 @read_unsigned(ptr %answer, ptr %out)
  call void @Py_DecRef(ptr %answer)
  ret i32 %status
raise:
  ret i32 -1
}

; Launches, by the driver's longer way where the launch has attributes. Returns the driver's status.
define internal i32 @launch_there(ptr %table, ptr %grid, i64 %stream, ptr %pointers) #2 {
entry:
  %config = alloca %Config
  %function = load ptr, ptr %table
  %threads.at = getelementptr %CudaTable, ptr %table, i32 0, i32 2
  %threads = load i32, ptr %threads.at
  %shared.at = getelementptr %CudaTable, ptr %table, i32 0, i32 3
  %shared = load i32, ptr %shared.at
  %x.64 = load i64, ptr %grid
  %y.at = getelementptr i64, ptr %grid, i64 1
  %y.64 = load i64, ptr %y.at
  %z.at = getelementptr i64, ptr %grid, i64 2
  %z.64 = load i64, ptr %z.at
  %x = trunc i64 %x.64 to i32
  %y = trunc i64 %y.64 to i32
  %z = trunc i64 %z.64 to i32
  %stream.ptr = inttoptr i64 %stream to ptr
  %count.at = getelementptr %CudaTable, ptr %table, i32 0, i32 9
  %count = load i64, ptr %count.at
  %is.plain = icmp eq i64 %count, 0
  br i1 %is.plain, label %plain, label %with
plain:
  %launch = load ptr, ptr @cu_launch_kernel
  %status = call i32 %launch(ptr %function, i32 %x, i32 %y, i32 %z, i32 %threads, i32 1, i32 1, i32 %shared,
                             ptr %stream.ptr, ptr %pointers, ptr null)
  ret i32 %status
with:
  %attributes.at = getelementptr %CudaTable, ptr %table, i32 0, i32 8
  %attributes = load ptr, ptr %attributes.at
  %count.32 = trunc i64 %count to i32
  store i32 %x, ptr %config
  %config.y.at = getelementptr %Config, ptr %config, i32 0, i32 1
  store i32 %y, ptr %config.y.at
  %config.z.at = getelementptr %Config, ptr %config, i32 0, i32 2
  store i32 %z, ptr %config.z.at
  %config.width.at = getelementptr %Config, ptr %config, i32 0, i32 3
  store i32 %threads, ptr %config.width.at
  %config.height.at = getelementptr %Config, ptr %config, i32 0, i32 4
  store i32 1, ptr %config.height.at
  %config.depth.at = getelementptr %Config, ptr %config, i32 0, i32 5
  store i32 1, ptr %config.depth.at
  %config.bytes.at = getelementptr %Config, ptr %config, i32 0, i32 6
  store i32 %shared, ptr %config.bytes.at
  %config.stream.at = getelementptr %Config, ptr %config, i32 0, i32 7
  store ptr %stream.ptr, ptr %config.stream.at
  %config.attributes.at = getelementptr %Config, ptr %config, i32 0, i32 8
  store ptr %attributes, ptr %config.attributes.at
  %config.count.at = getelementptr %Config, ptr %config, i32 0, i32 9
  store i32 %count.32, ptr %config.count.at
  %launch.ex = load ptr, ptr @cu_launch_kernel_ex
  %status.ex = call i32 %launch.ex(ptr %config, ptr %function, ptr %pointers, ptr null)
  ret i32 %status.ex
}

; Launches in the function's context, without the interpreter's lock: the driver waits where its queue is full. Returns the
; driver's status.
define internal i32 @start(ptr %table, ptr %grid, i64 %stream, ptr %pointers) #0 {
entry:
  %current.at = alloca ptr
  store ptr null, ptr %current.at
  %context.at = getelementptr %CudaTable, ptr %table, i32 0, i32 1
  %context = load ptr, ptr %context.at
  %get = load ptr, ptr @cu_ctx_get_current
  %push = load ptr, ptr @cu_ctx_push_current
  %pop = load ptr, ptr @cu_ctx_pop_current
  %state = call ptr @PyEval_SaveThread()
  %ignored = call i32 %get(ptr %current.at)
  %current = load ptr, ptr %current.at
  %is.current = icmp eq ptr %current, %context
  br i1 %is.current, label %here, label %enter
here:
  %status = call i32 @launch_there(ptr %table, ptr %grid, i64 %stream, ptr %pointers)
  br label %done
enter:
  %refused = call i32 %push(ptr %context)
  %entered = icmp eq i32 %refused, 0
  br i1 %entered, label %there, label %done
there:
  %status.there = call i32 @launch_there(ptr %table, ptr %grid, i64 %stream, ptr %pointers)
  %ignored.too = call i32 %pop(ptr %current.at)
  br label %done
done:
  %result = phi i32 [ %status, %here ], [ %refused, %enter ], [ %status.there, %there ]
  call void @PyEval_RestoreThread(ptr %state)
  ret i32 %result
}

define ptr @launch_cuda(ptr %self, ptr %objects, i64 %count) #0 {
entry:
  %programs.at = alloca i64
  %stream.at = alloca i64
  %holder = call ptr @at(ptr %self, i64 0)
  %table = call ptr @bytes_of(ptr %holder)
  %params.count.at = getelementptr %CudaTable, ptr %table, i32 0, i32 4
  %params.count.32 = load i32, ptr %params.count.at
  %params.count = zext i32 %params.count.32 to i64
  %slots.count.at = getelementptr %CudaTable, ptr %table, i32 0, i32 5
  %slots.count.32 = load i32, ptr %slots.count.at
  %slots.count = zext i32 %slots.count.32 to i64
  %record.at = getelementptr %CudaTable, ptr %table, i32 0, i32 6
  %record = load i64, ptr %record.at
  %maps.count.at = getelementptr %CudaTable, ptr %table, i32 0, i32 7
  %maps.count = load i64, ptr %maps.count.at
  %params = getelementptr %CudaTable, ptr %table, i64 1
  %records = getelementptr %Param, ptr %params, i64 %params.count
  %expected = add i64 %params.count, 3
  %right.count = icmp eq i64 %count, %expected
  br i1 %right.count, label %fill, label %differs

fill:
  ; The grid, which is no parameter, then a slot for each parameter, then the record's address.
  %all.slots = add i64 %slots.count, 4
  %grid = alloca i64, i64 %all.slots, align 16
  %slots = getelementptr i64, ptr %grid, i64 3
  %all.pointers = add i64 %all.slots, %maps.count
  %pointers = alloca ptr, i64 %all.pointers, align 16
  %maps = alloca [128 x i8], i64 %maps.count, align 64
  %grid.status = call i32 @fill_grid(ptr %objects, ptr %grid, ptr %programs.at)
  switch i32 %grid.status, label %raise [ i32 0, label %fill.rest
                                          i32 1, label %differs ]
fill.rest:
  %arguments = getelementptr ptr, ptr %objects, i64 3
  %status = call i32 @fill_slots(ptr %params, i64 %params.count, ptr %arguments, ptr %slots)
  switch i32 %status, label %raise [ i32 0, label %plan
                                     i32 1, label %differs ]
plan:
  %programs = load i64, ptr %programs.at
  %empty = icmp eq i64 %programs, 0
  br i1 %empty, label %done, label %compare
compare:
  %above.at = getelementptr %CudaTable, ptr %table, i32 0, i32 10
  %above = load i64, ptr %above.at
  %most.at = getelementptr %CudaTable, ptr %table, i32 0, i32 11
  %most = load i64, ptr %most.at
  %is.more = icmp ugt i64 %programs, %above
  %is.less = icmp ule i64 %programs, %most
  %is.anothers = and i1 %is.more, %is.less
  br i1 %is.anothers, label %other, label %find
other:
  %other.kernel = call ptr @at(ptr %self, i64 5)
  %other.result = call ptr @PyObject_Vectorcall(ptr %other.kernel, ptr %objects, i64 %count, ptr null)
  ret ptr %other.result
find:
  %stream.status = call i32 @find_stream(ptr %self, ptr %table, ptr %stream.at)
  switch i32 %stream.status, label %raise [ i32 0, label %go
                                            i32 1, label %differs ]
go:
  %record.slot = getelementptr i64, ptr %slots, i64 %slots.count
  %along.x = load i64, ptr %grid
  %turns.at = getelementptr %CudaTable, ptr %table, i32 0, i32 12
  %turns = load i64, ptr %turns.at
  %takes.turns = icmp ne i64 %turns, 0
  %last = select i1 %takes.turns, i64 %along.x, i64 %record
  store i64 %last, ptr %record.slot
  call void @point_to_slots(ptr %slots, i64 %slots.count, ptr %pointers)
  %maps.pointers = getelementptr ptr, ptr %pointers, i64 %slots.count
  %record.pointer = getelementptr ptr, ptr %maps.pointers, i64 %maps.count
  store ptr %record.slot, ptr %record.pointer
  %maps.status = call i32 @make_maps_there(ptr %table, ptr %records, i64 %maps.count, ptr %slots, ptr %maps,
                                          ptr %maps.pointers)
  %are.made = icmp eq i32 %maps.status, 0
  br i1 %are.made, label %share, label %otherwise
otherwise:
  %instead = call ptr @at(ptr %self, i64 4)
  %result = call ptr @PyObject_Vectorcall(ptr %instead, ptr %objects, i64 %count, ptr null)
  ret ptr %result
share:
  %is.flat = icmp eq i64 %programs, %along.x
  %shares = and i1 %takes.turns, %is.flat
  br i1 %shares, label %even, label %submit
even:
  ; As few programs as need no more rounds.
  %below.round = sub i64 %turns, 1
  %filled = add i64 %along.x, %below.round
  %rounds = udiv i64 %filled, %turns
  %below.rounds = sub i64 %rounds, 1
  %spread = add i64 %along.x, %below.rounds
  %fewer = udiv i64 %spread, %rounds
  store i64 %fewer, ptr %grid
  br label %submit
submit:
  %stream = load i64, ptr %stream.at
  %outcome = call i32 @start(ptr %table, ptr %grid, i64 %stream, ptr %pointers)
  %is.launched = icmp eq i32 %outcome, 0
  br i1 %is.launched, label %done, label %refused
refused:
  %refuse = call ptr @at(ptr %self, i64 3)
  %x = load i64, ptr %grid
  %y.at = getelementptr i64, ptr %grid, i64 1
  %y = load i64, ptr %y.at
  %z.at = getelementptr i64, ptr %grid, i64 2
  %z = load i64, ptr %z.at
  %answer = call ptr (ptr, ptr, ...) @PyObject_CallFunction(ptr %refuse, ptr @refusal, i32 %outcome, i64 %x, i64 %y, i64 %z)
  ret ptr %answer
done:
  %none = call ptr @Py_NewRef(ptr @_Py_NoneStruct)
  ret ptr %none
differs:
  %not.implemented = call ptr @Py_NewRef(ptr @_Py_NotImplementedStruct)
  ret ptr %not.implemented
raise:
  ret ptr null
}
