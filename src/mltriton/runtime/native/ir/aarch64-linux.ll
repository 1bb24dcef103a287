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

declare void @llvm.aarch64.isb(i32)
