; The launcher: a C function that Python calls as launcher(grid_x, grid_y, grid_z, *arguments).
;
; One function serves every kernel: what it must check is a table of %Param records, which the function object carries.
; It returns None after the launch; NotImplemented, with no exception set, when an argument is not what the kernel was
; specialised for; or null with a Python exception set. Arguments are borrowed: the caller's frame keeps them alive.
;
; Functions that look at an argument return a status: 0 it fits, 1 it does not, -1 a Python exception is set.

; What the function object's `self`, a tuple, begins with: a bytes object that holds a %Table and then its %Param records.
; kernel, scratch bytes, the number of programs below which the calling thread runs them all, parameters, slots, pace
; (what launches before took, see @run: the one field that changes)
%Table = type { ptr, i64, i64, i32, i32, double }

; kind, flags, first, second, zero mask, some mask, hole low, hole high. A value or an address passes the masks if
; value & zero mask == 0 and, unless the some mask is 0, value & some mask != 0.
;   kind 0, tensor:   first = address of the numpy descriptor, second = torch dtype (see @read_torch); 0 = not taken.
;                     flags 1: the kernel writes to it. Of a torch tensor's device, two words of DLPack (kind, number), the
;                     bits in hole high must be those of hole low
;   kind 1, integer:  first <= value <= second, and not hole low <= value <= hole high. flags 1: compare unsigned
;   kind 2, bool      kind 3, f32      kind 4, f64
;   kind 5, constant that must be the object at `first`
;   kind 6, constant that must be that object, or equal to it and of the same type (int, str)
;   kind 7, constant float with the bits `second`
; Kinds 5 to 7 take no slot.
%Param = type { i32, i32, i64, i64, i64, i64, i64, i64 }

; numpy's PyArrayObject (part of its C interface): data at byte 16, descr at 56, flags at 64. Checked in layout.py.
; CPython's PyObject: type at byte 8. Checked there too.

; Set from Python.

@ndarray_type = global ptr null
@torch_tensor_type = global ptr null
@torch_parameter_type = global ptr null
@array_types = global [17 x ptr] zeroinitializer  ; types derived from numpy's, whose arrays are taken like its own
@tensor_types = global [17 x ptr] zeroinitializer ; and from torch's; both end with a null
@torch_describe = global ptr null       ; int (*)(PyObject *, DLTensor *) of DLPack's exchange interface, or null
@torch_is_neg = global ptr null         ; bool (*)(const at::Tensor &), or null: tensors are asked by their method
@torch_handle = global i64 0            ; where a torch tensor has its at::Tensor, in bytes; known where @torch_is_neg is
@torch_get_num_threads = global ptr null
@torch_is_bound = global i8 0           ; 1 once torch's types, functions and threads are known
@threads = global i64 0                 ; threads of a launch; 0: as many as torch uses
@main_thread = global i64 0             ; pthread_self() of the thread in which Python runs signal handlers
@prepare = global ptr null              ; Python callable () -> None: binds torch if it is loaded, starts missing workers
@has_memory = global ptr null           ; Python callable (array) -> bool, asked of arrays whose address looks like none
@modules = global ptr null              ; sys.modules
@name_torch = global ptr null           ; interned strings
@name_dtype = global ptr null
@name_is_cpu = global ptr null
@name_data_ptr = global ptr null
@name_is_neg = global ptr null
@scratch_error = global ptr null        ; the exception for a launch that got no scratch memory

@scratch_message = internal constant [52 x i8] c"there is no memory for the kernel's scratch buffers\00"

@_Py_NoneStruct = external global i8
@_Py_NotImplementedStruct = external global i8
@_Py_TrueStruct = external global i8
@_Py_FalseStruct = external global i8
@PyLong_Type = external global i8
@PyFloat_Type = external global i8

declare ptr @PyTuple_GetItem(ptr, i64)
declare ptr @PyBytes_AsString(ptr)
declare ptr @PyDict_GetItemWithError(ptr, ptr)
declare i64 @PyLong_AsLongLongAndOverflow(ptr, ptr)
declare i64 @PyLong_AsUnsignedLongLong(ptr)
declare double @PyFloat_AsDouble(ptr)
declare i32 @PyObject_RichCompareBool(ptr, ptr, i32)
declare ptr @PyObject_GetAttr(ptr, ptr)
declare i32 @PyObject_IsTrue(ptr)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare ptr @PyObject_VectorcallMethod(ptr, ptr, i64, ptr)
declare ptr @PyObject_CallNoArgs(ptr)
declare ptr @PyObject_CallOneArg(ptr, ptr)
declare ptr @PyErr_Occurred()
declare void @PyErr_Clear()
declare void @PyErr_SetString(ptr, ptr)
declare i32 @PyErr_CheckSignals()
declare i32 @PyGILState_Ensure()
declare void @PyGILState_Release(i32)
declare i64 @pthread_self()
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare ptr @Py_NewRef(ptr)
declare void @Py_DecRef(ptr)

define internal ptr @type_of(ptr %object) #2 {
  %type.at = getelementptr i8, ptr %object, i64 8
  %type = load ptr, ptr %type.at
  ret ptr %type
}

; Numbers.

; Reads an int that fits 64 signed bits; bools, numpy integers and other subclasses do not fit.
define internal i32 @read_integer(ptr %object, ptr %out) #2 {
entry:
  %overflow.at = alloca i32
  %type = call ptr @type_of(ptr %object)
  %is.int = icmp eq ptr %type, @PyLong_Type
  br i1 %is.int, label %convert, label %differs
convert:
  %value = call i64 @PyLong_AsLongLongAndOverflow(ptr %object, ptr %overflow.at)
  store i64 %value, ptr %out
  %overflow = load i32, ptr %overflow.at
  %overflows = icmp ne i32 %overflow, 0
  br i1 %overflows, label %differs, label %suspect
suspect:
  %minus.one = icmp eq i64 %value, -1
  br i1 %minus.one, label %ask, label %fits
ask:
  %error = call ptr @PyErr_Occurred()
  %failed = icmp ne ptr %error, null
  br i1 %failed, label %raise, label %fits
fits:
  ret i32 0
differs:
  ret i32 1
raise:
  ret i32 -1
}

; Reads an int that fits 64 unsigned bits.
define internal i32 @read_unsigned(ptr %object, ptr %out) #2 {
entry:
  %type = call ptr @type_of(ptr %object)
  %is.int = icmp eq ptr %type, @PyLong_Type
  br i1 %is.int, label %convert, label %differs
convert:
  %value = call i64 @PyLong_AsUnsignedLongLong(ptr %object)
  store i64 %value, ptr %out
  %all.ones = icmp eq i64 %value, -1
  br i1 %all.ones, label %ask, label %fits
ask:
  %error = call ptr @PyErr_Occurred()
  %overflows = icmp ne ptr %error, null
  br i1 %overflows, label %clear, label %fits
clear:
  call void @PyErr_Clear()
  br label %differs
fits:
  ret i32 0
differs:
  ret i32 1
}

; Whether the value passes the record's masks.
define internal i1 @passes_masks(ptr %param, i64 %value) #2 {
  %zero.at = getelementptr %Param, ptr %param, i32 0, i32 4
  %zero.mask = load i64, ptr %zero.at
  %some.at = getelementptr %Param, ptr %param, i32 0, i32 5
  %some.mask = load i64, ptr %some.at
  %zero.bits = and i64 %value, %zero.mask
  %zero.passes = icmp eq i64 %zero.bits, 0
  %some.bits = and i64 %value, %some.mask
  %some.set = icmp ne i64 %some.bits, 0
  %some.absent = icmp eq i64 %some.mask, 0
  %some.passes = or i1 %some.set, %some.absent
  %passes = and i1 %zero.passes, %some.passes
  ret i1 %passes
}

define internal i32 @fill_integer(ptr %param, ptr %object, ptr %slot) #0 {
entry:
  %flags.at = getelementptr %Param, ptr %param, i32 0, i32 1
  %flags = load i32, ptr %flags.at
  %low.at = getelementptr %Param, ptr %param, i32 0, i32 2
  %low = load i64, ptr %low.at
  %high.at = getelementptr %Param, ptr %param, i32 0, i32 3
  %high = load i64, ptr %high.at
  %hole.low.at = getelementptr %Param, ptr %param, i32 0, i32 6
  %hole.low = load i64, ptr %hole.low.at
  %hole.high.at = getelementptr %Param, ptr %param, i32 0, i32 7
  %hole.high = load i64, ptr %hole.high.at
  %unsigned = icmp ne i32 %flags, 0
  br i1 %unsigned, label %read.unsigned, label %read.signed
read.signed:
  %signed.status = call i32 @read_integer(ptr %object, ptr %slot)
  br label %read
read.unsigned:
  %unsigned.status = call i32 @read_unsigned(ptr %object, ptr %slot)
  br label %read
read:
  %status = phi i32 [ %signed.status, %read.signed ], [ %unsigned.status, %read.unsigned ]
  %is.read = icmp eq i32 %status, 0
  br i1 %is.read, label %check, label %done
check:
  ; Adding the sign bit turns an unsigned comparison into a signed one.
  %bias = select i1 %unsigned, i64 -9223372036854775808, i64 0
  %value = load i64, ptr %slot
  %v = xor i64 %value, %bias
  %l = xor i64 %low, %bias
  %h = xor i64 %high, %bias
  %hl = xor i64 %hole.low, %bias
  %hh = xor i64 %hole.high, %bias
  %above = icmp sge i64 %v, %l
  %below = icmp sle i64 %v, %h
  %in.range = and i1 %above, %below
  %under.hole = icmp slt i64 %v, %hl
  %over.hole = icmp sgt i64 %v, %hh
  %outside.hole = or i1 %under.hole, %over.hole
  %masks = call i1 @passes_masks(ptr %param, i64 %value)
  %in = and i1 %in.range, %outside.hole
  %fits = and i1 %in, %masks
  %verdict = select i1 %fits, i32 0, i32 1
  br label %done
done:
  %result = phi i32 [ %status, %read ], [ %verdict, %check ]
  ret i32 %result
}

define internal i32 @fill_bool(ptr %object, ptr %slot) #0 {
  %true = icmp eq ptr %object, @_Py_TrueStruct
  %false = icmp eq ptr %object, @_Py_FalseStruct
  %value = zext i1 %true to i64
  store i64 %value, ptr %slot
  %fits = or i1 %true, %false
  %status = select i1 %fits, i32 0, i32 1
  ret i32 %status
}

; Reads an exact float; an int or a numpy scalar does not fit.
define internal i32 @read_float(ptr %object, ptr %out) #2 {
entry:
  %type = call ptr @type_of(ptr %object)
  %is.float = icmp eq ptr %type, @PyFloat_Type
  br i1 %is.float, label %convert, label %differs
convert:
  %value = call double @PyFloat_AsDouble(ptr %object)
  store double %value, ptr %out
  %suspect = fcmp oeq double %value, -1.0
  br i1 %suspect, label %ask, label %fits
ask:
  %error = call ptr @PyErr_Occurred()
  %failed = icmp ne ptr %error, null
  br i1 %failed, label %raise, label %fits
fits:
  ret i32 0
differs:
  ret i32 1
raise:
  ret i32 -1
}

define internal i32 @fill_f32(ptr %object, ptr %slot) #0 {
entry:
  %status = call i32 @read_float(ptr %object, ptr %slot)
  %is.read = icmp eq i32 %status, 0
  br i1 %is.read, label %round, label %done
round:
  %wide = load double, ptr %slot
  %narrow = fptrunc double %wide to float
  %bits = bitcast float %narrow to i32
  %bits.64 = zext i32 %bits to i64
  store i64 %bits.64, ptr %slot
  br label %done
done:
  ret i32 %status
}

; Tensors.

; Whether a type is in a list that ends with a null.
define internal i1 @is_listed(ptr %type, ptr %list) #1 {
entry:
  br label %look
look:
  %i = phi i64 [ 0, %entry ], [ %next, %other ]
  %known.at = getelementptr ptr, ptr %list, i64 %i
  %known = load ptr, ptr %known.at
  %end = icmp eq ptr %known, null
  br i1 %end, label %no, label %compare
compare:
  %same = icmp eq ptr %known, %type
  br i1 %same, label %yes, label %other
other:
  %next = add i64 %i, 1
  br label %look
yes:
  ret i1 true
no:
  ret i1 false
}

; Whether a tensor is a view whose elements are those in memory negated. Of one that cannot say it is true.
define internal i1 @is_negated(ptr %tensor) #0 {
entry:
  %function = load ptr, ptr @torch_is_neg
  %unknown = icmp eq ptr %function, null
  br i1 %unknown, label %by.method, label %by.function
by.function:
  %offset = load i64, ptr @torch_handle
  %handle = getelementptr i8, ptr %tensor, i64 %offset
  %negated = call zeroext i1 %function(ptr %handle)
  ret i1 %negated
by.method:
  %name = load ptr, ptr @name_is_neg
  %arguments = alloca ptr
  store ptr %tensor, ptr %arguments
  %answer = call ptr @PyObject_VectorcallMethod(ptr %name, ptr %arguments, i64 1, ptr null)
  %no.answer = icmp eq ptr %answer, null
  br i1 %no.answer, label %refused, label %answered
answered:
  call void @Py_DecRef(ptr %answer)
  %plain = icmp eq ptr %answer, @_Py_FalseStruct
  %other = xor i1 %plain, true
  ret i1 %other
refused:
  call void @PyErr_Clear()
  ret i1 true
}

; Reads the address of a torch tensor's first element if it has the record's dtype and lies on its device (which older
; versions of torch are asked for in main memory only). A tensor that cannot say (no storage, a dtype DLPack does not know)
; does not fit.
define internal i32 @read_torch(ptr %param, ptr %tensor, ptr %out) #0 {
entry:
  %dtype.at = getelementptr %Param, ptr %param, i32 0, i32 3
  %wanted = load i64, ptr %dtype.at
  %describe = load ptr, ptr @torch_describe
  %old.torch = icmp eq ptr %describe, null
  br i1 %old.torch, label %by.attributes, label %by.dlpack

by.dlpack:
  ; DLTensor: data at byte 0, device (kind, number) at 8, dtype (one 32-bit word) at 20, byte offset at 40; 48 bytes.
  %view = alloca [6 x i64], align 8
  %failure = call i32 %describe(ptr %tensor, ptr %view)
  %described = icmp eq i32 %failure, 0
  br i1 %described, label %compare, label %refused
compare:
  %device.at = getelementptr i8, ptr %view, i64 8
  %device = load i64, ptr %device.at
  %place.at = getelementptr %Param, ptr %param, i32 0, i32 6
  %place = load i64, ptr %place.at
  %place.mask.at = getelementptr %Param, ptr %param, i32 0, i32 7
  %place.mask = load i64, ptr %place.mask.at
  %device.bits = and i64 %device, %place.mask
  %is.there = icmp eq i64 %device.bits, %place
  %word.at = getelementptr i8, ptr %view, i64 20
  %word = load i32, ptr %word.at
  %word.64 = zext i32 %word to i64
  %same.word = icmp eq i64 %word.64, %wanted
  %offset.at = getelementptr i8, ptr %view, i64 40
  %offset = load i64, ptr %offset.at
  %base = load i64, ptr %view
  %address = add i64 %base, %offset
  store i64 %address, ptr %out
  %accepted = and i1 %is.there, %same.word
  %verdict = select i1 %accepted, i32 0, i32 1
  ret i32 %verdict

by.attributes:
  %name.dtype = load ptr, ptr @name_dtype
  %dtype = call ptr @PyObject_GetAttr(ptr %tensor, ptr %name.dtype)
  %no.dtype = icmp eq ptr %dtype, null
  br i1 %no.dtype, label %refused, label %compare.dtype
compare.dtype:
  call void @Py_DecRef(ptr %dtype)
  %dtype.64 = ptrtoint ptr %dtype to i64
  %same.dtype = icmp eq i64 %dtype.64, %wanted
  br i1 %same.dtype, label %ask.device, label %differs
ask.device:
  %name.is_cpu = load ptr, ptr @name_is_cpu
  %is_cpu = call ptr @PyObject_GetAttr(ptr %tensor, ptr %name.is_cpu)
  %no.answer = icmp eq ptr %is_cpu, null
  br i1 %no.answer, label %refused, label %compare.device
compare.device:
  call void @Py_DecRef(ptr %is_cpu)
  %is.cpu = icmp eq ptr %is_cpu, @_Py_TrueStruct
  br i1 %is.cpu, label %ask.address, label %differs
ask.address:
  %name.data_ptr = load ptr, ptr @name_data_ptr
  %arguments = alloca ptr
  store ptr %tensor, ptr %arguments
  %number = call ptr @PyObject_VectorcallMethod(ptr %name.data_ptr, ptr %arguments, i64 1, ptr null)
  %no.number = icmp eq ptr %number, null
  br i1 %no.number, label %refused, label %convert
convert:
  %status = call i32 @read_unsigned(ptr %number, ptr %out)
  call void @Py_DecRef(ptr %number)
  ret i32 %status

refused:
  call void @PyErr_Clear()
  ret i32 1
differs:
  ret i32 1
}

define internal i32 @fill_tensor(ptr %param, ptr %object, ptr %slot) #0 {
entry:
  %type = call ptr @type_of(ptr %object)
  %ndarray = load ptr, ptr @ndarray_type
  %is.ndarray = icmp eq ptr %type, %ndarray
  br i1 %is.ndarray, label %numpy, label %maybe.tensor

numpy:
  %wanted.at = getelementptr %Param, ptr %param, i32 0, i32 2
  %wanted = load i64, ptr %wanted.at
  %descr.at = getelementptr i8, ptr %object, i64 56
  %descr = load i64, ptr %descr.at
  %same.descr = icmp eq i64 %descr, %wanted
  ; NPY_ARRAY_WRITEABLE is 0x400.
  %param.flags.at = getelementptr %Param, ptr %param, i32 0, i32 1
  %param.flags = load i32, ptr %param.flags.at
  %needed = shl i32 %param.flags, 10
  %array.flags.at = getelementptr i8, ptr %object, i64 64
  %array.flags = load i32, ptr %array.flags.at
  %present = and i32 %array.flags, %needed
  %usable = icmp eq i32 %present, %needed
  %data.at = getelementptr i8, ptr %object, i64 16
  %data = load i64, ptr %data.at
  store i64 %data, ptr %slot
  %numpy.fits = and i1 %same.descr, %usable
  br i1 %numpy.fits, label %array.address, label %differs
array.address:
  %no.data = icmp eq i64 %data, 0
  br i1 %no.data, label %suspect, label %check

maybe.tensor:
  %tensor.type = load ptr, ptr @torch_tensor_type
  %is.tensor = icmp eq ptr %type, %tensor.type
  br i1 %is.tensor, label %torch, label %maybe.parameter
maybe.parameter:
  %parameter.type = load ptr, ptr @torch_parameter_type
  %is.parameter = icmp eq ptr %type, %parameter.type
  br i1 %is.parameter, label %torch, label %maybe.derived
maybe.derived:
  %derived.array = call i1 @is_listed(ptr %type, ptr @array_types)
  br i1 %derived.array, label %numpy, label %maybe.derived.tensor
maybe.derived.tensor:
  %derived.tensor = call i1 @is_listed(ptr %type, ptr @tensor_types)
  br i1 %derived.tensor, label %torch, label %differs
torch:
  %status = call i32 @read_torch(ptr %param, ptr %object, ptr %slot)
  %is.read = icmp eq i32 %status, 0
  br i1 %is.read, label %tensor.sign, label %not.read
not.read:
  ret i32 %status
tensor.sign:
  %negated = call i1 @is_negated(ptr %object)
  br i1 %negated, label %differs, label %tensor.address
tensor.address:
  ; A tensor without memory has an offset for an address. No program has memory below 64 GiB, except for small arrays
  ; where it does not lie at a random place.
  %tensor.data = load i64, ptr %slot
  %low = icmp ult i64 %tensor.data, 68719476736
  br i1 %low, label %suspect, label %check
suspect:
  %callable = load ptr, ptr @has_memory
  %answer = call ptr @PyObject_CallOneArg(ptr %callable, ptr %object)
  %failed = icmp eq ptr %answer, null
  br i1 %failed, label %raise, label %answered
answered:
  call void @Py_DecRef(ptr %answer)
  %has.memory = icmp eq ptr %answer, @_Py_TrueStruct
  br i1 %has.memory, label %check, label %differs

check:
  %address = load i64, ptr %slot
  %passes = call i1 @passes_masks(ptr %param, i64 %address)
  %verdict = select i1 %passes, i32 0, i32 1
  ret i32 %verdict
differs:
  ret i32 1
raise:
  ret i32 -1
}

; Constants.

define internal i32 @check_same(ptr %param, ptr %object) #2 {
  %wanted.at = getelementptr %Param, ptr %param, i32 0, i32 2
  %wanted = load ptr, ptr %wanted.at
  %same = icmp eq ptr %object, %wanted
  %status = select i1 %same, i32 0, i32 1
  ret i32 %status
}

; Equality of two exact ints or strings cannot run the user's code.
define internal i32 @check_equal(ptr %param, ptr %object) #0 {
entry:
  %wanted.at = getelementptr %Param, ptr %param, i32 0, i32 2
  %wanted = load ptr, ptr %wanted.at
  %same = icmp eq ptr %object, %wanted
  br i1 %same, label %fits, label %compare.types
compare.types:
  %type = call ptr @type_of(ptr %object)
  %wanted.type = call ptr @type_of(ptr %wanted)
  %same.type = icmp eq ptr %type, %wanted.type
  br i1 %same.type, label %compare, label %differs
compare:
  %equal = call i32 @PyObject_RichCompareBool(ptr %object, ptr %wanted, i32 2)
  switch i32 %equal, label %raise [ i32 0, label %differs
                                    i32 1, label %fits ]
fits:
  ret i32 0
differs:
  ret i32 1
raise:
  ret i32 -1
}

define internal i32 @check_float(ptr %param, ptr %object) #0 {
entry:
  %bits.at = alloca i64
  %status = call i32 @read_float(ptr %object, ptr %bits.at)
  %is.read = icmp eq i32 %status, 0
  br i1 %is.read, label %compare, label %done
compare:
  %bits = load i64, ptr %bits.at
  %wanted.at = getelementptr %Param, ptr %param, i32 0, i32 3
  %wanted = load i64, ptr %wanted.at
  %same = icmp eq i64 %bits, %wanted
  %verdict = select i1 %same, i32 0, i32 1
  br label %done
done:
  %result = phi i32 [ %status, %entry ], [ %verdict, %compare ]
  ret i32 %result
}

; Reading the arguments.

; Checks one argument against its record and, if it takes a slot, fills that.
define internal i32 @fill(ptr %param, i32 %kind, ptr %object, ptr %slot) #2 {
  switch i32 %kind, label %same [ i32 0, label %tensor
                                  i32 1, label %integer
                                  i32 2, label %bool
                                  i32 3, label %f32
                                  i32 4, label %f64
                                  i32 6, label %equal
                                  i32 7, label %float ]
tensor:
  %status.0 = call i32 @fill_tensor(ptr %param, ptr %object, ptr %slot)
  ret i32 %status.0
integer:
  %status.1 = call i32 @fill_integer(ptr %param, ptr %object, ptr %slot)
  ret i32 %status.1
bool:
  %status.2 = call i32 @fill_bool(ptr %object, ptr %slot)
  ret i32 %status.2
f32:
  %status.3 = call i32 @fill_f32(ptr %object, ptr %slot)
  ret i32 %status.3
f64:
  %status.4 = call i32 @read_float(ptr %object, ptr %slot)
  ret i32 %status.4
same:
  %status.5 = call i32 @check_same(ptr %param, ptr %object)
  ret i32 %status.5
equal:
  %status.6 = call i32 @check_equal(ptr %param, ptr %object)
  ret i32 %status.6
float:
  %status.7 = call i32 @check_float(ptr %param, ptr %object)
  ret i32 %status.7
}

; Checks all arguments and fills the slots.
define internal i32 @fill_slots(ptr %params, i64 %count, ptr %objects, ptr %slots) #0 {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %next ]
  %slot = phi ptr [ %slots, %entry ], [ %slot.next, %next ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %one, label %fits
one:
  %param = getelementptr %Param, ptr %params, i64 %i
  %object.at = getelementptr ptr, ptr %objects, i64 %i
  %object = load ptr, ptr %object.at
  %kind = load i32, ptr %param
  %status = call i32 @fill(ptr %param, i32 %kind, ptr %object, ptr %slot)
  %is.filled = icmp eq i32 %status, 0
  br i1 %is.filled, label %next, label %stop
next:
  %takes.slot = icmp ult i32 %kind, 5
  %step = zext i1 %takes.slot to i64
  %slot.next = getelementptr i64, ptr %slot, i64 %step
  %i.next = add i64 %i, 1
  br label %loop
fits:
  ret i32 0
stop:
  ret i32 %status
}

; Reads the three grid dimensions, each an int from 0 to 2^31 - 1, and the number of programs, which must fit 63 bits.
define internal i32 @fill_grid(ptr %objects, ptr %slots, ptr %programs) #0 {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %next ]
  %product = phi i64 [ 1, %entry ], [ %product.next, %next ]
  %object.at = getelementptr ptr, ptr %objects, i64 %i
  %object = load ptr, ptr %object.at
  %slot = getelementptr i64, ptr %slots, i64 %i
  %status = call i32 @read_integer(ptr %object, ptr %slot)
  %is.read = icmp eq i32 %status, 0
  br i1 %is.read, label %check, label %stop
check:
  %value = load i64, ptr %slot
  %valid = icmp ult i64 %value, 2147483648
  br i1 %valid, label %multiply, label %differs
multiply:
  %wide = call { i64, i1 } @llvm.smul.with.overflow.i64(i64 %product, i64 %value)
  %product.next = extractvalue { i64, i1 } %wide, 0
  %overflows = extractvalue { i64, i1 } %wide, 1
  br i1 %overflows, label %differs, label %next
next:
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, 3
  br i1 %more, label %loop, label %fits
fits:
  store i64 %product.next, ptr %programs
  ret i32 0
differs:
  ret i32 1
stop:
  ret i32 %status
}

; Choosing the threads.

; Calls Python's side of the pool. Returns whether it succeeded; otherwise a Python exception is set.
define internal i1 @call_prepare() #1 {
entry:
  %callable = load ptr, ptr @prepare
  %result = call ptr @PyObject_CallNoArgs(ptr %callable)
  %failed = icmp eq ptr %result, null
  br i1 %failed, label %raise, label %done
done:
  call void @Py_DecRef(ptr %result)
  ret i1 true
raise:
  ret i1 false
}

; Returns 1 if torch is loaded and not bound yet, 0 if there is nothing to do, -1 with a Python exception set.
define internal i32 @torch_has_appeared() #2 {
entry:
  %bound = load i8, ptr @torch_is_bound
  %is.bound = icmp ne i8 %bound, 0
  br i1 %is.bound, label %no, label %look
look:
  %modules = load ptr, ptr @modules
  %name = load ptr, ptr @name_torch
  %module = call ptr @PyDict_GetItemWithError(ptr %modules, ptr %name)
  %absent = icmp eq ptr %module, null
  br i1 %absent, label %ask, label %yes
ask:
  %error = call ptr @PyErr_Occurred()
  %failed = icmp ne ptr %error, null
  br i1 %failed, label %raise, label %no
yes:
  ret i32 1
no:
  ret i32 0
raise:
  ret i32 -1
}

; Returns how many threads a launch may use now, from 1 to 1024 (the number of scratch buffers).
define i64 @thread_count() #0 {
entry:
  %fixed = load i64, ptr @threads
  %is.fixed = icmp ne i64 %fixed, 0
  br i1 %is.fixed, label %limit, label %ask
ask:
  %get = load ptr, ptr @torch_get_num_threads
  %answer = call i32 %get()
  %answer.64 = sext i32 %answer to i64
  br label %limit
limit:
  %count = phi i64 [ %fixed, %entry ], [ %answer.64, %ask ]
  %at.least.one = call i64 @llvm.smax.i64(i64 %count, i64 1)
  %result = call i64 @llvm.umin.i64(i64 %at.least.one, i64 1024)
  ret i64 %result
}

; Returns the size of the team for a launch of two or more programs, or 0 with a Python exception set.
define internal i64 @choose_team(i64 %programs) #0 {
entry:
  %appeared = call i32 @torch_has_appeared()
  switch i32 %appeared, label %raise [ i32 0, label %count
                                       i32 1, label %bind ]
bind:
  %bound = call i1 @call_prepare()
  br i1 %bound, label %count, label %raise
count:
  %threads = call i64 @thread_count()
  ; An OpenMP library destroys threads when its team shrinks, so it always gets the whole team.
  %parallel = load ptr, ptr @gomp_parallel
  %own = icmp eq ptr %parallel, null
  br i1 %own, label %count.workers, label %whole
count.workers:
  %workers = load i64, ptr @workers
  %missing = sub i64 %threads, 1
  %short = icmp ult i64 %workers, %missing
  br i1 %short, label %start.workers, label %part
start.workers:
  %started = call i1 @call_prepare()
  br i1 %started, label %part, label %raise
part:
  %team = call i64 @llvm.umin.i64(i64 %threads, i64 %programs)
  ret i64 %team
whole:
  ret i64 %threads
raise:
  ret i64 0
}

; Launching.

; Runs Python's handlers of signals that have arrived; whether one raised an exception.
define internal i1 @check_signals() #0 {
  %state = call i32 @PyGILState_Ensure()
  %failure = call i32 @PyErr_CheckSignals()
  call void @PyGILState_Release(i32 %state)
  %raised = icmp ne i32 %failure, 0
  ret i1 %raised
}

; Does what @run does, without the interpreter's lock. With 2, a Python exception is set.
define i32 @run_released(ptr %kernel, ptr %slots, i64 %programs, i64 %scratch.bytes, i64 %team, ptr %pace) #0 {
  %thread = call i64 @pthread_self()
  %main = load i64, ptr @main_thread
  %is.main = icmp eq i64 %thread, %main
  %check = select i1 %is.main, ptr @check_signals, ptr null
  %state = call ptr @PyEval_SaveThread()
  %outcome = call i32 @run(ptr %kernel, ptr %slots, i64 %programs, i64 %scratch.bytes, i64 %team, ptr %pace, ptr %check)
  call void @PyEval_RestoreThread(ptr %state)
  ret i32 %outcome
}

define ptr @launch(ptr %self, ptr %objects, i64 %count) #0 {
entry:
  %programs.at = alloca i64
  %holder = call ptr @PyTuple_GetItem(ptr %self, i64 0)
  %no.holder = icmp eq ptr %holder, null
  br i1 %no.holder, label %raise, label %open
open:
  %table = call ptr @PyBytes_AsString(ptr %holder)
  %no.table = icmp eq ptr %table, null
  br i1 %no.table, label %raise, label %read
read:
  %kernel = load ptr, ptr %table
  %bytes.at = getelementptr %Table, ptr %table, i32 0, i32 1
  %scratch.bytes = load i64, ptr %bytes.at
  %serial.at = getelementptr %Table, ptr %table, i32 0, i32 2
  %serial.below = load i64, ptr %serial.at
  %params.count.at = getelementptr %Table, ptr %table, i32 0, i32 3
  %params.count.32 = load i32, ptr %params.count.at
  %params.count = zext i32 %params.count.32 to i64
  %slots.count.at = getelementptr %Table, ptr %table, i32 0, i32 4
  %slots.count.32 = load i32, ptr %slots.count.at
  %slots.count = zext i32 %slots.count.32 to i64
  %pace = getelementptr %Table, ptr %table, i32 0, i32 5
  %params = getelementptr %Table, ptr %table, i64 1
  %expected = add i64 %params.count, 3
  %right.count = icmp eq i64 %count, %expected
  br i1 %right.count, label %fill, label %differs

fill:
  %all.slots = add i64 %slots.count, 4
  %slots = alloca i64, i64 %all.slots, align 16
  %grid.slots = getelementptr i64, ptr %slots, i64 %slots.count
  %grid.status = call i32 @fill_grid(ptr %objects, ptr %grid.slots, ptr %programs.at)
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
  br i1 %empty, label %done, label %weigh
weigh:
  %serial = icmp ult i64 %programs, %serial.below
  br i1 %serial, label %start, label %gather
gather:
  %chosen = call i64 @choose_team(i64 %programs)
  %failed = icmp eq i64 %chosen, 0
  br i1 %failed, label %raise, label %start
start:
  %team = phi i64 [ 1, %weigh ], [ %chosen, %gather ]
  %outcome = call i32 @run_released(ptr %kernel, ptr %slots, i64 %programs, i64 %scratch.bytes, i64 %team, ptr %pace)
  switch i32 %outcome, label %raise [ i32 0, label %done
                                      i32 1, label %no.memory ]

no.memory:
  %error = load ptr, ptr @scratch_error
  call void @PyErr_SetString(ptr %error, ptr @scratch_message)
  br label %raise
done:
  %none = call ptr @Py_NewRef(ptr @_Py_NoneStruct)
  ret ptr %none
differs:
  %not.implemented = call ptr @Py_NewRef(ptr @_Py_NotImplementedStruct)
  ret ptr %not.implemented
raise:
  ret ptr null
}

; Upstream's way to launch. The function object's `self` is a tuple of a launcher and of what does the same in Python. The
; objects: x, y, z, stream, function, metadata, launch metadata, enter hook, exit hook, arguments. Where there are no hooks
; the launcher gets the grid and the arguments; whatever it does not take, and launches with hooks, Python gets whole.
define ptr @launch_described(ptr %self, ptr %objects, i64 %count) #0 {
entry:
  %described = icmp uge i64 %count, 9
  br i1 %described, label %look, label %whole
look:
  %enter.at = getelementptr ptr, ptr %objects, i64 7
  %enter = load ptr, ptr %enter.at
  %exit.at = getelementptr ptr, ptr %objects, i64 8
  %exit = load ptr, ptr %exit.at
  %enters = call i32 @PyObject_IsTrue(ptr %enter)
  %exits = call i32 @PyObject_IsTrue(ptr %exit)
  %hooks = or i32 %enters, %exits
  switch i32 %hooks, label %whole [ i32 0, label %shorten
                                    i32 -1, label %raise ]
shorten:
  %short.count = sub i64 %count, 6
  %short = alloca ptr, i64 %short.count
  call void @llvm.memcpy.p0.p0.i64(ptr %short, ptr %objects, i64 24, i1 false)
  %arguments = getelementptr ptr, ptr %objects, i64 9
  %rest = getelementptr ptr, ptr %short, i64 3
  %rest.count = sub i64 %count, 9
  %rest.bytes = shl i64 %rest.count, 3
  call void @llvm.memcpy.p0.p0.i64(ptr %rest, ptr %arguments, i64 %rest.bytes, i1 false)
  %launcher = call ptr @PyTuple_GetItem(ptr %self, i64 0)
  %result = call ptr @PyObject_Vectorcall(ptr %launcher, ptr %short, i64 %short.count, ptr null)
  %differs = icmp eq ptr %result, @_Py_NotImplementedStruct
  br i1 %differs, label %give.up, label %done
give.up:
  call void @Py_DecRef(ptr %result)
  br label %whole
done:
  ret ptr %result
whole:
  %python = call ptr @PyTuple_GetItem(ptr %self, i64 1)
  %answer = call ptr @PyObject_Vectorcall(ptr %python, ptr %objects, i64 %count, ptr null)
  ret ptr %answer
raise:
  ret ptr null
}

declare { i64, i1 } @llvm.smul.with.overflow.i64(i64, i64)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare i64 @llvm.smax.i64(i64, i64)

attributes #2 = { nounwind uwtable alwaysinline }
