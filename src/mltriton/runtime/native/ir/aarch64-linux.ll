; What the pool needs of the machine: AArch64 Linux.

; Tells the core that this is a spin loop. `isb` waits tens of cycles, as x86's pause does; `yield` is a no-op on most cores.
define internal void @relax() #0 {
  call void @llvm.aarch64.isb(i32 15)
  ret void
}

; Linux's number of the futex system call.
define internal i64 @futex_number() #0 {
  ret i64 98
}

; Linux's number of the sched_setattr system call; that of sched_getattr follows.
define internal i64 @sched_number() #0 {
  ret i64 274
}

; A clock that counts evenly, at whatever rate: nanoseconds of CLOCK_MONOTONIC.
define i64 @ticks() #0 {
  %time = alloca [2 x i64]
  %ignored = call i32 @clock_gettime(i32 1, ptr %time)
  %seconds = load i64, ptr %time
  %rest.at = getelementptr i64, ptr %time, i64 1
  %rest = load i64, ptr %rest.at
  %whole = mul i64 %seconds, 1000000000
  %sum = add i64 %whole, %rest
  ret i64 %sum
}

declare i32 @clock_gettime(i32, ptr)
declare void @llvm.aarch64.isb(i32)
