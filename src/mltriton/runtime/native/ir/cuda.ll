; The launcher of CUDA kernels, by the guards and slots of launcher.ll. Nothing here waits, allocates memory of the GPU or
; touches the interpreter's objects while the driver works: launches go into CUDA graphs, and other threads go on.

; What the function object's `self`, a tuple, has: a bytes object with a %CudaTable and then its %Param records; a callable
; (device) -> stream; the device's number; a callable (status, grid x, y, z) that raises.
; function, context, threads, bytes of shared memory, parameters, slots, and an address that is a last parameter (0: none)
%CudaTable = type { ptr, ptr, i32, i32, i32, i32, i64 }

; Set from Python: the driver's functions.

@cu_launch_kernel = global ptr null
@cu_ctx_get_current = global ptr null
@cu_ctx_push_current = global ptr null
@cu_ctx_pop_current = global ptr null

@refusal = internal constant [5 x i8] c"iLLL\00"

declare ptr @PyObject_CallFunction(ptr, ptr, ...)

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

; Asks for the stream of launches. A status as in launcher.ll: 1 where the answer is no number.
define internal i32 @find_stream(ptr %self, ptr %out) #2 {
entry:
  %ask = call ptr @PyTuple_GetItem(ptr %self, i64 1)
  %device = call ptr @PyTuple_GetItem(ptr %self, i64 2)
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

; Launches in the function's context, without the interpreter's lock: the driver waits where its queue is full. Returns the
; driver's status.
define internal i32 @start(ptr %table, ptr %grid, i64 %stream, ptr %pointers) #0 {
entry:
  %current.at = alloca ptr
  store ptr null, ptr %current.at
  %function = load ptr, ptr %table
  %context.at = getelementptr %CudaTable, ptr %table, i32 0, i32 1
  %context = load ptr, ptr %context.at
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
  %launch = load ptr, ptr @cu_launch_kernel
  %get = load ptr, ptr @cu_ctx_get_current
  %push = load ptr, ptr @cu_ctx_push_current
  %pop = load ptr, ptr @cu_ctx_pop_current
  %state = call ptr @PyEval_SaveThread()
  %ignored = call i32 %get(ptr %current.at)
  %current = load ptr, ptr %current.at
  %is.current = icmp eq ptr %current, %context
  br i1 %is.current, label %here, label %enter
here:
  %status = call i32 %launch(ptr %function, i32 %x, i32 %y, i32 %z, i32 %threads, i32 1, i32 1, i32 %shared,
                             ptr %stream.ptr, ptr %pointers, ptr null)
  br label %done
enter:
  %refused = call i32 %push(ptr %context)
  %entered = icmp eq i32 %refused, 0
  br i1 %entered, label %there, label %done
there:
  %status.there = call i32 %launch(ptr %function, i32 %x, i32 %y, i32 %z, i32 %threads, i32 1, i32 1, i32 %shared,
                                   ptr %stream.ptr, ptr %pointers, ptr null)
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
  %holder = call ptr @PyTuple_GetItem(ptr %self, i64 0)
  %no.holder = icmp eq ptr %holder, null
  br i1 %no.holder, label %raise, label %open
open:
  %table = call ptr @PyBytes_AsString(ptr %holder)
  %no.table = icmp eq ptr %table, null
  br i1 %no.table, label %raise, label %read
read:
  %params.count.at = getelementptr %CudaTable, ptr %table, i32 0, i32 4
  %params.count.32 = load i32, ptr %params.count.at
  %params.count = zext i32 %params.count.32 to i64
  %slots.count.at = getelementptr %CudaTable, ptr %table, i32 0, i32 5
  %slots.count.32 = load i32, ptr %slots.count.at
  %slots.count = zext i32 %slots.count.32 to i64
  %record.at = getelementptr %CudaTable, ptr %table, i32 0, i32 6
  %record = load i64, ptr %record.at
  %params = getelementptr %CudaTable, ptr %table, i64 1
  %expected = add i64 %params.count, 3
  %right.count = icmp eq i64 %count, %expected
  br i1 %right.count, label %fill, label %differs

fill:
  ; The grid, which is no parameter, then a slot for each parameter, then the record's address.
  %all.slots = add i64 %slots.count, 4
  %grid = alloca i64, i64 %all.slots, align 16
  %slots = getelementptr i64, ptr %grid, i64 3
  %pointers = alloca ptr, i64 %all.slots, align 16
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
  br i1 %empty, label %done, label %find
find:
  %stream.status = call i32 @find_stream(ptr %self, ptr %stream.at)
  switch i32 %stream.status, label %raise [ i32 0, label %go
                                            i32 1, label %differs ]
go:
  %record.slot = getelementptr i64, ptr %slots, i64 %slots.count
  store i64 %record, ptr %record.slot
  %given = add i64 %slots.count, 1
  call void @point_to_slots(ptr %slots, i64 %given, ptr %pointers)
  %stream = load i64, ptr %stream.at
  %outcome = call i32 @start(ptr %table, ptr %grid, i64 %stream, ptr %pointers)
  %is.launched = icmp eq i32 %outcome, 0
  br i1 %is.launched, label %done, label %refused
refused:
  %refuse = call ptr @PyTuple_GetItem(ptr %self, i64 3)
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
