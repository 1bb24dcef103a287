; What stands behind kernel[grid] once a launch of it has gone through machine code: calls like that one are put into the
; order of the parameters and handed to the launcher without the interpreter's help. Python's launcher takes all others.

; What the function object's `self`, a tuple, has: Python's launcher; two lists, of hooks and of what must be looked up
; (tuples of a callable, what to ask it, and what it must give); and a list of known calls.
; A known call is a tuple: a bytes object with a %Call and its places; the keywords' names (None: no keywords); a list and
; what its first item must be; the launcher; what the call gives; grid x, y and z; then values: those that the options
; must be, and those of the parameters that the call leaves out.
; how many positional arguments, how many arguments the launcher takes, how many options; then the places of these, of the
; call's arguments, and of those: from 0 on the call's, below that of values left out, -1 the first
%Call = type { i64, i64, i64 }

declare i64 @PyList_Size(ptr)
declare ptr @PyList_GetItem(ptr, i64)

; Whether everything that must be looked up is what it was: 0 yes, 1 no, -1 with a Python exception set.
define internal i32 @look_up(ptr %watched) #0 {
entry:
  %count = call i64 @PyList_Size(ptr %watched)
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %same ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %ask, label %fits
ask:
  %item = call ptr @PyList_GetItem(ptr %watched, i64 %i)
  %gone = icmp eq ptr %item, null
  br i1 %gone, label %raise, label %call
call:
  %find = call ptr @PyTuple_GetItem(ptr %item, i64 0)
  %name = call ptr @PyTuple_GetItem(ptr %item, i64 1)
  %wanted = call ptr @PyTuple_GetItem(ptr %item, i64 2)
  %found = call ptr @PyObject_CallOneArg(ptr %find, ptr %name)
  %failed = icmp eq ptr %found, null
  br i1 %failed, label %raise, label %compare
compare:
  call void @Py_DecRef(ptr %found)
  %next = add i64 %i, 1
  %is.same = icmp eq ptr %found, %wanted
  br i1 %is.same, label %same, label %differs
same:
  br label %loop
fits:
  ret i32 0
differs:
  ret i32 1
raise:
  ret i32 -1
}

; Whether a call is like a known one: 0 yes, 1 no, -1 with a Python exception set.
define internal i32 @is_like(ptr %known, ptr %call, ptr %arguments, i64 %positional, ptr %names) #0 {
entry:
  %positional.known = load i64, ptr %call
  %same.count = icmp eq i64 %positional, %positional.known
  br i1 %same.count, label %named, label %differs
named:
  %names.known = call ptr @PyTuple_GetItem(ptr %known, i64 1)
  %none = icmp eq ptr %names, null
  %given = select i1 %none, ptr @_Py_NoneStruct, ptr %names
  %same.names = icmp eq ptr %given, %names.known
  br i1 %same.names, label %options, label %compare
compare:
  %equal = call i32 @PyObject_RichCompareBool(ptr %given, ptr %names.known, i32 2)
  switch i32 %equal, label %raise [ i32 0, label %differs
                                    i32 1, label %options ]
options:
  %count.at = getelementptr %Call, ptr %call, i32 0, i32 2
  %count = load i64, ptr %count.at
  %places = getelementptr %Call, ptr %call, i64 1
  br label %loop
loop:
  %i = phi i64 [ 0, %options ], [ %next, %option ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %option, label %valid
option:
  %place.at = getelementptr i64, ptr %places, i64 %i
  %place = load i64, ptr %place.at
  %argument.at = getelementptr ptr, ptr %arguments, i64 %place
  %argument = load ptr, ptr %argument.at
  %value.place = add i64 %i, 9
  %value = call ptr @PyTuple_GetItem(ptr %known, i64 %value.place)
  %next = add i64 %i, 1
  %same.value = icmp eq ptr %argument, %value
  br i1 %same.value, label %loop, label %differs
valid:
  %list = call ptr @PyTuple_GetItem(ptr %known, i64 2)
  %wanted = call ptr @PyTuple_GetItem(ptr %known, i64 3)
  %mark = call ptr @PyList_GetItem(ptr %list, i64 0)
  %is.valid = icmp eq ptr %mark, %wanted
  %verdict = select i1 %is.valid, i32 0, i32 1
  ret i32 %verdict
differs:
  ret i32 1
raise:
  ret i32 -1
}

; Hands a call that is like a known one to the launcher, and gives what that gives.
define internal ptr @launch_like(ptr %known, ptr %call, ptr %arguments) #1 {
entry:
  %count.at = getelementptr %Call, ptr %call, i32 0, i32 1
  %count = load i64, ptr %count.at
  %options.at = getelementptr %Call, ptr %call, i32 0, i32 2
  %options = load i64, ptr %options.at
  %first = getelementptr %Call, ptr %call, i64 1
  %places = getelementptr i64, ptr %first, i64 %options
  %all = add i64 %count, 3
  %objects = alloca ptr, i64 %all
  %x = call ptr @PyTuple_GetItem(ptr %known, i64 6)
  %y = call ptr @PyTuple_GetItem(ptr %known, i64 7)
  %z = call ptr @PyTuple_GetItem(ptr %known, i64 8)
  %y.at = getelementptr ptr, ptr %objects, i64 1
  %z.at = getelementptr ptr, ptr %objects, i64 2
  store ptr %x, ptr %objects
  store ptr %y, ptr %y.at
  store ptr %z, ptr %z.at
  %left.out = add i64 %options, 8
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %put ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %one, label %go
one:
  %place.at = getelementptr i64, ptr %places, i64 %i
  %place = load i64, ptr %place.at
  %is.given = icmp sge i64 %place, 0
  br i1 %is.given, label %given, label %default
given:
  %argument.at = getelementptr ptr, ptr %arguments, i64 %place
  %argument = load ptr, ptr %argument.at
  br label %put
default:
  %default.place = sub i64 %left.out, %place
  %value = call ptr @PyTuple_GetItem(ptr %known, i64 %default.place)
  br label %put
put:
  %object = phi ptr [ %argument, %given ], [ %value, %default ]
  %number = add i64 %i, 3
  %object.at = getelementptr ptr, ptr %objects, i64 %number
  store ptr %object, ptr %object.at
  %next = add i64 %i, 1
  br label %loop
go:
  %launcher = call ptr @PyTuple_GetItem(ptr %known, i64 4)
  %result = call ptr @PyObject_Vectorcall(ptr %launcher, ptr %objects, i64 %all, ptr null)
  ret ptr %result
}

define ptr @launch_known(ptr %self, ptr %arguments, i64 %positional, ptr %names) #0 {
entry:
  %hooks = call ptr @PyTuple_GetItem(ptr %self, i64 1)
  %watched = call ptr @PyTuple_GetItem(ptr %self, i64 2)
  %list = call ptr @PyTuple_GetItem(ptr %self, i64 3)
  %hooks.count = call i64 @PyList_Size(ptr %hooks)
  %no.hooks = icmp eq i64 %hooks.count, 0
  br i1 %no.hooks, label %look, label %python
look:
  %looked = call i32 @look_up(ptr %watched)
  switch i32 %looked, label %raise [ i32 0, label %loop
                                     i32 1, label %python ]
loop:
  %i = phi i64 [ 0, %look ], [ %next, %another ]
  %count = call i64 @PyList_Size(ptr %list)
  %more = icmp slt i64 %i, %count
  br i1 %more, label %one, label %python
one:
  ; Another thread may forget it meanwhile.
  %borrowed = call ptr @PyList_GetItem(ptr %list, i64 %i)
  %known = call ptr @Py_NewRef(ptr %borrowed)
  %bytes = call ptr @PyTuple_GetItem(ptr %known, i64 0)
  %call = call ptr @PyBytes_AsString(ptr %bytes)
  %like = call i32 @is_like(ptr %known, ptr %call, ptr %arguments, i64 %positional, ptr %names)
  switch i32 %like, label %give.up [ i32 0, label %launch
                                     i32 1, label %another ]
launch:
  %result = call ptr @launch_like(ptr %known, ptr %call, ptr %arguments)
  %failed = icmp eq ptr %result, null
  br i1 %failed, label %give.up, label %done
done:
  call void @Py_DecRef(ptr %result)
  %launched = icmp eq ptr %result, @_Py_NoneStruct
  br i1 %launched, label %give, label %another
give:
  %compiled = call ptr @PyTuple_GetItem(ptr %known, i64 5)
  %answer = call ptr @Py_NewRef(ptr %compiled)
  call void @Py_DecRef(ptr %known)
  ret ptr %answer
another:
  call void @Py_DecRef(ptr %known)
  %next = add i64 %i, 1
  br label %loop
give.up:
  call void @Py_DecRef(ptr %known)
  ret ptr null
python:
  %launcher = call ptr @PyTuple_GetItem(ptr %self, i64 0)
  %slow = call ptr @PyObject_Vectorcall(ptr %launcher, ptr %arguments, i64 %positional, ptr %names)
  ret ptr %slow
raise:
  ret ptr null
}
