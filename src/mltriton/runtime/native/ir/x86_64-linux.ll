; What the pool needs of the machine: x86-64 Linux.

; Tells the core that this is a spin loop.
define internal void @relax() #0 {
  call void @llvm.x86.sse2.pause()
  ret void
}

; Linux's number of the futex system call.
define internal i64 @futex_number() #0 {
  ret i64 202
}

; Linux's number of the sched_setattr system call; that of sched_getattr follows.
define internal i64 @sched_number() #0 {
  ret i64 314
}

; A clock that counts evenly, at whatever rate.
define i64 @ticks() #0 {
  %count = call i64 @llvm.readcyclecounter()
  ret i64 %count
}

declare void @llvm.x86.sse2.pause()
declare i64 @llvm.readcyclecounter()
