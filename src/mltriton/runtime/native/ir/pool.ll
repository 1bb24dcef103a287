; The pool: runs a kernel over the programs of a grid on a team of threads.
;
; A launch is a %Job on the launching thread's stack. Threads claim programs from it until none is left, so a thread that
; comes late, or never, costs nothing but its help. The launching thread takes part, and waits at the end only for threads
; that have registered: a worker that is still asleep is not waited for.
;
; Two ways to get the team: an OpenMP library already in the process (its address in @gomp_parallel), or the workers here.
; No function touches Python: they run without the interpreter's lock.


; kernel, args, end: call kernel(args, begin, until, scratch) until begin reaches end.
; shift: a claim takes (programs left) >> shift. The counter of the next program has a cache line to itself.
; check: i1 (*)(void), which the launching thread asks now and then whether to stop, or null; stopped: it said so.
; cost: ticks that one of the threads took for a program, a double; 0 where it was not measured.
%Job = type { ptr, ptr, i64, i64, i64, ptr, i64, double, i64, [56 x i8] }
;             0 kernel, 1 args, 2 end, 3 scratch bytes, 4 shift, 5 check, 6 stopped, 7 cost, 8 next

; One thread's scratch memory: in use (0 or 1), buffer, its size in bytes. One cache line each.
%Scratch = type { i32, i32, ptr, i64, [40 x i8] }

; Set from Python.

@gomp_parallel = global ptr null        ; void (*)(void (*)(void *), void *, unsigned threads, unsigned flags), or null
@omp_get_thread_num = global ptr null   ; int (*)(void), set together with @gomp_parallel
@spin_limit = global i64 0              ; calls of @relax before a waiting thread sleeps
@ticks_long = global i64 0              ; of the clock (@ticks): a piece that takes this long makes the next one smaller
@ticks_ask = global i64 0               ; between two questions whether to stop
@ticks_split = global i64 0             ; a launch that takes less on one thread is not split
@ticks_forget = global i64 0            ; until half of @late is forgotten; 0: nothing is learnt of teams that are late
@workers = global i64 0                 ; threads that run @worker, numbered from 1

; The workers' state.
; A worker registers by adding 1 to @active and then looking at @open; the launching thread clears @open and then waits
; for @active to be 0. With both in sequentially consistent order, a worker that saw @open is waited for, and one that is
; not waited for does not touch the job.

@busy = internal global i32 0, align 64      ; 1 while a launch uses the workers
@epoch = internal global i32 0, align 64     ; counts launches; workers sleep on it
@sleepers = internal global i32 0, align 64
@active = internal global i32 0, align 64    ; registered workers; the launching thread sleeps on it
@joining = internal global i32 0, align 64   ; 1 while the launching thread may sleep on @active
@open = internal global i32 0, align 64      ; 1 while @job may be joined
@job = internal global ptr null
@team = internal global i64 0                ; threads that may take part in @job, the launching one included

@scratch = internal global [1024 x %Scratch] zeroinitializer, align 64

; What splitting has lately cost: where other programs have the processors, an OpenMP region waits for a thread that is
; not running, thousands of times as long as a small launch takes.

@late = internal global i64 0                ; ticks lost by a split launch, a running mean at @late_since
@late_since = internal global i64 0

declare ptr @aligned_alloc(i64, i64)
declare void @free(ptr)
declare i64 @syscall(i64, ...)

; Sleeping and waking.

; Sleeps while *word == value, at the latest until somebody calls @wake (or for no reason at all).
define internal void @sleep(ptr %word, i32 %value) #1 {
  %number = call i64 @futex_number()
  %ignored = call i64 (i64, ...) @syscall(i64 %number, ptr %word, i32 128, i32 %value, ptr null)
  ret void
}

; Wakes up to `count` threads that sleep on the word.
define internal void @wake(ptr %word, i32 %count) #1 {
  %number = call i64 @futex_number()
  %ignored = call i64 (i64, ...) @syscall(i64 %number, ptr %word, i32 129, i32 %count)
  ret void
}

; Relaxes `count` times. Called once when the workers are set up, to learn how long that takes.
define void @relax_many(i64 %count) #0 {
entry:
  br label %again
again:
  %i = phi i64 [ 0, %entry ], [ %next, %again ]
  call void @relax()
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %again, label %done
done:
  ret void
}

; Scratch memory.

; Returns a %Scratch of at least `bytes` (a multiple of 64) that is now the caller's, or null if there is no memory.
; Starts at entry `first`, so that a thread finds the buffer it used before, still in its cache.
define internal ptr @acquire_scratch(i64 %first, i64 %bytes) #0 {
entry:
  br label %search
search:
  %tried = phi i64 [ 0, %entry ], [ %tried.next, %taken ]
  %sum = add i64 %first, %tried
  %index = and i64 %sum, 1023
  %entry.at = getelementptr [1024 x %Scratch], ptr @scratch, i64 0, i64 %index
  %exchange = cmpxchg ptr %entry.at, i32 0, i32 1 acquire monotonic
  %ours = extractvalue { i32, i1 } %exchange, 1
  br i1 %ours, label %found, label %taken
taken:
  %tried.next = add i64 %tried, 1
  %more = icmp ult i64 %tried.next, 1024
  br i1 %more, label %search, label %nothing
found:
  %buffer.at = getelementptr %Scratch, ptr %entry.at, i32 0, i32 2
  %size.at = getelementptr %Scratch, ptr %entry.at, i32 0, i32 3
  %size = load i64, ptr %size.at
  %enough = icmp uge i64 %size, %bytes
  br i1 %enough, label %success, label %grow
grow:
  %old = load ptr, ptr %buffer.at
  call void @free(ptr %old)
  %new = call ptr @aligned_alloc(i64 64, i64 %bytes)
  %failed = icmp eq ptr %new, null
  %new.size = select i1 %failed, i64 0, i64 %bytes
  store ptr %new, ptr %buffer.at
  store i64 %new.size, ptr %size.at
  br i1 %failed, label %give.back, label %success
success:
  ret ptr %entry.at
give.back:
  store atomic i32 0, ptr %entry.at release, align 4
  br label %nothing
nothing:
  ret ptr null
}

; Frees every buffer that no thread is using and returns how many bytes that were.
define i64 @release_scratch() #0 {
entry:
  br label %loop
loop:
  %index = phi i64 [ 0, %entry ], [ %index.next, %continue ]
  %sum = phi i64 [ 0, %entry ], [ %sum.next, %continue ]
  %entry.at = getelementptr [1024 x %Scratch], ptr @scratch, i64 0, i64 %index
  %exchange = cmpxchg ptr %entry.at, i32 0, i32 1 acquire monotonic
  %ours = extractvalue { i32, i1 } %exchange, 1
  br i1 %ours, label %free, label %continue
free:
  %buffer.at = getelementptr %Scratch, ptr %entry.at, i32 0, i32 2
  %size.at = getelementptr %Scratch, ptr %entry.at, i32 0, i32 3
  %buffer = load ptr, ptr %buffer.at
  %size = load i64, ptr %size.at
  call void @free(ptr %buffer)
  store ptr null, ptr %buffer.at
  store i64 0, ptr %size.at
  store atomic i32 0, ptr %entry.at release, align 4
  br label %continue
continue:
  %freed = phi i64 [ 0, %loop ], [ %size, %free ]
  %sum.next = add i64 %sum, %freed
  %index.next = add i64 %index, 1
  %more = icmp ult i64 %index.next, 1024
  br i1 %more, label %loop, label %done
done:
  ret i64 %sum.next
}

; Taking part in a job.

; Claims pieces [begin, until) of the job and runs them until none is left. Pieces shrink with what is left, down to one
; program: few claims where there are very many programs, and no thread left with a long last piece. They begin with one
; program and grow while they are quick, so that a thread looks up often enough: the launching one (0) to ask whether to
; stop, and, unless `patience` is 0, to return after so many ticks.
define internal void @run_pieces(ptr %job, ptr %scratch, i64 %thread, i64 %patience) #0 {
entry:
  %kernel = load ptr, ptr %job
  %args.at = getelementptr %Job, ptr %job, i32 0, i32 1
  %args = load ptr, ptr %args.at
  %end.at = getelementptr %Job, ptr %job, i32 0, i32 2
  %end = load i64, ptr %end.at
  %shift.at = getelementptr %Job, ptr %job, i32 0, i32 4
  %shift = load i64, ptr %shift.at
  %next.at = getelementptr %Job, ptr %job, i32 0, i32 8
  %launching = icmp eq i64 %thread, 0
  %check.at = getelementptr %Job, ptr %job, i32 0, i32 5
  %check = load ptr, ptr %check.at
  %has.check = icmp ne ptr %check, null
  %asks = and i1 %launching, %has.check
  %limited = icmp ne i64 %patience, 0
  %one = icmp eq i64 %end, 1
  br i1 %one, label %look, label %read.clock
read.clock:
  %clock = call i64 @ticks()
  br label %look
look:
  %begun = phi i64 [ 0, %entry ], [ %clock, %read.clock ], [ %begun, %go.on ]
  %last = phi i64 [ 0, %entry ], [ %clock, %read.clock ], [ %last.next, %go.on ]
  %asked = phi i64 [ 0, %entry ], [ %clock, %read.clock ], [ %asked.next, %go.on ]
  %most = phi i64 [ 1, %entry ], [ 1, %read.clock ], [ %most.next, %go.on ]
  %ran = phi i64 [ 0, %entry ], [ 0, %read.clock ], [ %ran.next, %go.on ]
  %seen = load atomic i64, ptr %next.at monotonic, align 8
  br label %claim
claim:
  %begin = phi i64 [ %seen, %look ], [ %newer, %try ]
  %left = sub i64 %end, %begin
  %none = icmp sle i64 %left, 0
  br i1 %none, label %finish, label %try
try:
  %share = lshr i64 %left, %shift
  %some = call i64 @llvm.umax.i64(i64 %share, i64 1)
  %piece = call i64 @llvm.umin.i64(i64 %some, i64 %most)
  %until = add i64 %begin, %piece
  %exchange = cmpxchg ptr %next.at, i64 %begin, i64 %until monotonic monotonic
  %newer = extractvalue { i64, i1 } %exchange, 0
  %ours = extractvalue { i64, i1 } %exchange, 1
  br i1 %ours, label %run, label %claim
run:
  call void %kernel(ptr %args, i64 %begin, i64 %until, ptr %scratch)
  %ran.next = add i64 %ran, %piece
  %more = icmp slt i64 %until, %end
  br i1 %more, label %pace, label %finish
pace:
  %now = call i64 @ticks()
  %took = sub i64 %now, %last
  %long = load i64, ptr @ticks_long
  %slow = icmp sge i64 %took, %long
  %half = lshr i64 %most, 1
  %fewer = call i64 @llvm.umax.i64(i64 %half, i64 1)
  %bounded = call i64 @llvm.umin.i64(i64 %most, i64 1152921504606846976)
  %many = shl i64 %bounded, 3
  %most.next = select i1 %slow, i64 %fewer, i64 %many
  %interval = load i64, ptr @ticks_ask
  %since = sub i64 %now, %asked
  %due = icmp sge i64 %since, %interval
  %ask.now = and i1 %asks, %due
  br i1 %ask.now, label %ask, label %weigh
ask:
  %stop = call i1 %check()
  br i1 %stop, label %halt, label %answered
halt:
  %stopped.at = getelementptr %Job, ptr %job, i32 0, i32 6
  store i64 1, ptr %stopped.at
  store atomic i64 %end, ptr %next.at monotonic, align 8
  ret void
answered:
  %after = call i64 @ticks()
  br label %weigh
weigh:
  %last.next = phi i64 [ %now, %pace ], [ %after, %answered ]
  %asked.next = phi i64 [ %asked, %pace ], [ %after, %answered ]
  %spent = sub i64 %now, %begun
  %over = icmp sgt i64 %spent, %patience
  %leave = and i1 %limited, %over
  br i1 %leave, label %measure, label %go.on
go.on:
  br label %look

finish:
  %ran.all = phi i64 [ %ran, %claim ], [ %ran.next, %run ]
  %some.ran = icmp ne i64 %ran.all, 0
  %several = xor i1 %one, true
  %measures = and i1 %some.ran, %several
  br i1 %measures, label %measure, label %done
measure:
  %programs = phi i64 [ %ran.all, %finish ], [ %ran.next, %weigh ]
  %stop.clock = call i64 @ticks()
  %total = sub i64 %stop.clock, %begun
  %total.float = sitofp i64 %total to double
  %programs.float = sitofp i64 %programs to double
  %cost = fdiv double %total.float, %programs.float
  %cost.at = getelementptr %Job, ptr %job, i32 0, i32 7
  store atomic double %cost, ptr %cost.at monotonic, align 8
  br label %done
done:
  ret void
}

; Takes part in the job with scratch memory of its own, as the team's thread number `thread`. A thread for which there is
; no memory takes no programs: the others run them.
define internal void @take_part(ptr %job, i64 %thread, i64 %patience) #0 {
entry:
  %bytes.at = getelementptr %Job, ptr %job, i32 0, i32 3
  %bytes = load i64, ptr %bytes.at
  %none = icmp eq i64 %bytes, 0
  br i1 %none, label %without, label %with
without:
  call void @run_pieces(ptr %job, ptr null, i64 %thread, i64 %patience)
  ret void
with:
  %scratch = call ptr @acquire_scratch(i64 %thread, i64 %bytes)
  %failed = icmp eq ptr %scratch, null
  br i1 %failed, label %done, label %run
run:
  %buffer.at = getelementptr %Scratch, ptr %scratch, i32 0, i32 2
  %buffer = load ptr, ptr %buffer.at
  call void @run_pieces(ptr %job, ptr %buffer, i64 %thread, i64 %patience)
  store atomic i32 0, ptr %scratch release, align 4
  br label %done
done:
  ret void
}

; The body of an OpenMP parallel region.
define internal void @take_part_in_region(ptr %job) #0 {
  %get = load ptr, ptr @omp_get_thread_num
  %number = call i32 %get()
  %thread = zext i32 %number to i64
  call void @take_part(ptr %job, i64 %thread, i64 0)
  ret void
}

; The workers.

; What a worker thread runs, for ever; its number is 1 or more.
define ptr @worker(ptr %number) #0 {
entry:
  %thread = ptrtoint ptr %number to i64
  %limit = load i64, ptr @spin_limit
  br label %wait
wait:
  %known = phi i32 [ 0, %entry ], [ %epoch, %leave.quietly ], [ %epoch, %wake.launcher ]
  br label %spin
spin:
  %spins = phi i64 [ 0, %wait ], [ %spins.next, %spin.more ], [ 0, %slept ]
  %epoch = load atomic i32, ptr @epoch seq_cst, align 4
  %new = icmp ne i32 %epoch, %known
  br i1 %new, label %register, label %nothing.new
nothing.new:
  %tired = icmp uge i64 %spins, %limit
  br i1 %tired, label %fall.asleep, label %spin.more
spin.more:
  call void @relax()
  %spins.next = add i64 %spins, 1
  br label %spin
fall.asleep:
  %ignored.0 = atomicrmw add ptr @sleepers, i32 1 seq_cst
  call void @sleep(ptr @epoch, i32 %known)
  %ignored.1 = atomicrmw sub ptr @sleepers, i32 1 seq_cst
  br label %slept
slept:
  br label %spin
register:
  %ignored.2 = atomicrmw add ptr @active, i32 1 seq_cst
  %open = load atomic i32, ptr @open seq_cst, align 4
  %is.open = icmp ne i32 %open, 0
  br i1 %is.open, label %opened, label %leave
opened:
  %team = load i64, ptr @team
  %wanted = icmp ult i64 %thread, %team
  br i1 %wanted, label %join, label %leave
join:
  %job = load ptr, ptr @job
  call void @take_part(ptr %job, i64 %thread, i64 0)
  br label %leave
leave:
  %ignored.3 = atomicrmw sub ptr @active, i32 1 seq_cst
  %joining = load atomic i32, ptr @joining seq_cst, align 4
  %is.joining = icmp ne i32 %joining, 0
  br i1 %is.joining, label %wake.launcher, label %leave.quietly
wake.launcher:
  call void @wake(ptr @active, i32 1)
  br label %wait
leave.quietly:
  br label %wait
}

; Waits until no worker is registered.
define internal void @join() #0 {
entry:
  %limit = load i64, ptr @spin_limit
  br label %spin
spin:
  %spins = phi i64 [ 0, %entry ], [ %spins.next, %spin.more ]
  %active = load atomic i32, ptr @active seq_cst, align 4
  %none = icmp eq i32 %active, 0
  br i1 %none, label %done, label %wait
wait:
  %tired = icmp uge i64 %spins, %limit
  br i1 %tired, label %announce, label %spin.more
spin.more:
  call void @relax()
  %spins.next = add i64 %spins, 1
  br label %spin
announce:
  store atomic i32 1, ptr @joining seq_cst, align 4
  br label %look
look:
  %still = load atomic i32, ptr @active seq_cst, align 4
  %finished = icmp eq i32 %still, 0
  br i1 %finished, label %awake, label %fall.asleep
fall.asleep:
  call void @sleep(ptr @active, i32 %still)
  br label %look
awake:
  store atomic i32 0, ptr @joining seq_cst, align 4
  br label %done
done:
  ret void
}

; Runs the job on the calling thread and up to team - 1 workers, or, while another launch has the workers, on the calling
; thread alone: nobody waits for a launch that is not its own.
define internal void @run_with_workers(ptr %job, i64 %team) #0 {
entry:
  %exchange = cmpxchg ptr @busy, i32 0, i32 1 acquire monotonic
  %ours = extractvalue { i32, i1 } %exchange, 1
  br i1 %ours, label %open, label %alone
alone:
  call void @take_part(ptr %job, i64 0, i64 0)
  ret void
open:
  store ptr %job, ptr @job
  store i64 %team, ptr @team
  store atomic i32 1, ptr @open seq_cst, align 4
  %ignored = atomicrmw add ptr @epoch, i32 1 seq_cst
  %sleepers = load atomic i32, ptr @sleepers seq_cst, align 4
  %all.awake = icmp eq i32 %sleepers, 0
  br i1 %all.awake, label %work, label %rouse
rouse:
  %team.32 = trunc i64 %team to i32
  %helpers = sub i32 %team.32, 1
  call void @wake(ptr @epoch, i32 %helpers)
  br label %work
work:
  call void @take_part(ptr %job, i64 0, i64 0)
  store atomic i32 0, ptr @open seq_cst, align 4
  call void @join()
  store atomic i32 0, ptr @busy release, align 4
  ret void
}

; In a forked child: there are no workers, and whatever other threads of the parent were doing does not happen here.
define void @reset_after_fork() #0 {
entry:
  store i64 0, ptr @workers
  store i32 0, ptr @busy
  store i32 0, ptr @epoch
  store i32 0, ptr @sleepers
  store i32 0, ptr @active
  store i32 0, ptr @joining
  store i32 0, ptr @open
  br label %loop
loop:
  %index = phi i64 [ 0, %entry ], [ %index.next, %loop ]
  %entry.at = getelementptr [1024 x %Scratch], ptr @scratch, i64 0, i64 %index
  store i32 0, ptr %entry.at
  %index.next = add i64 %index, 1
  %more = icmp ult i64 %index.next, 1024
  br i1 %more, label %loop, label %done
done:
  ret void
}

; Launching.

; Runs programs [0, end) of `kernel` on up to `team` threads (at least 1). Returns 0 if all of them ran, 1 if some could
; not because no thread could get its scratch memory, 2 if `check` (see %Job) said to stop.
; `pace` points to a double, the ticks of a program in launches before (0: there were none), or is null. A launch that
; should be quicker than waking others is begun alone, and split only if it turns out to take longer.
define i32 @run(ptr %kernel, ptr %args, i64 %end, i64 %scratch.bytes, i64 %team, ptr %pace, ptr %check) #0 {
entry:
  %job = alloca %Job, align 64
  %one = icmp eq i64 %end, 1
  %no.scratch = icmp eq i64 %scratch.bytes, 0
  %simple = and i1 %one, %no.scratch
  br i1 %simple, label %single, label %set.up
single:
  call void %kernel(ptr %args, i64 0, i64 1, ptr null)
  ret i32 0
set.up:
  store ptr %kernel, ptr %job
  %args.at = getelementptr %Job, ptr %job, i32 0, i32 1
  store ptr %args, ptr %args.at
  %end.at = getelementptr %Job, ptr %job, i32 0, i32 2
  store i64 %end, ptr %end.at
  %bytes.at = getelementptr %Job, ptr %job, i32 0, i32 3
  store i64 %scratch.bytes, ptr %bytes.at
  %shift.at = getelementptr %Job, ptr %job, i32 0, i32 4
  %check.at = getelementptr %Job, ptr %job, i32 0, i32 5
  store ptr %check, ptr %check.at
  %stopped.at = getelementptr %Job, ptr %job, i32 0, i32 6
  store i64 0, ptr %stopped.at
  %cost.at = getelementptr %Job, ptr %job, i32 0, i32 7
  store double 0.0, ptr %cost.at
  %next.at = getelementptr %Job, ptr %job, i32 0, i32 8
  store atomic i64 0, ptr %next.at monotonic, align 8
  %serial = icmp eq i64 %team, 1
  br i1 %serial, label %alone, label %together
alone:
  store i64 0, ptr %shift.at
  call void @take_part(ptr %job, i64 0, i64 0)
  br label %done
together:
  ; A claim takes at most a quarter of a thread's even share: 1 / (4 * team), the team rounded up to a power of two.
  %below = sub i64 %team, 1
  %zeros = call i64 @llvm.ctlz.i64(i64 %below, i1 false)
  %shift = sub i64 66, %zeros
  store i64 %shift, ptr %shift.at
  %no.pace = icmp eq ptr %pace, null
  br i1 %no.pace, label %split, label %weigh
weigh:
  %expected = load double, ptr %pace
  %programs = sitofp i64 %end to double
  %total = fmul double %expected, %programs
  %limit = load i64, ptr @ticks_split
  %limit.float = sitofp i64 %limit to double
  %is.new = fcmp oeq double %expected, 0.0
  %large = fcmp oge double %total, %limit.float
  %late = call i64 @lateness()
  %late.float = sitofp i64 %late to double
  %team.float = sitofp i64 %team to double
  %share.float = fdiv double %total, %team.float
  %gain = fsub double %total, %share.float
  %pays = fcmp oge double %gain, %late.float
  %worth = and i1 %large, %pays
  %splits = or i1 %is.new, %worth
  br i1 %splits, label %split, label %begin.alone
begin.alone:
  %most.patient = call i64 @llvm.umax.i64(i64 %limit, i64 %late)
  %patience = shl i64 %most.patient, 2
  call void @take_part(ptr %job, i64 0, i64 %patience)
  %begun = load atomic i64, ptr %next.at monotonic, align 8
  %quick = icmp sge i64 %begun, %end
  br i1 %quick, label %done, label %split.rest
split.rest:
  br label %split
split:
  %alone.takes = phi double [ 0.0, %together ], [ %total, %weigh ], [ %total, %split.rest ]
  %split.at = call i64 @ticks()
  %parallel = load ptr, ptr @gomp_parallel
  %no.openmp = icmp eq ptr %parallel, null
  br i1 %no.openmp, label %workers, label %openmp
openmp:
  %threads = trunc i64 %team to i32
  call void %parallel(ptr @take_part_in_region, ptr %job, i32 %threads, i32 0)
  br label %joined
workers:
  call void @run_with_workers(ptr %job, i64 %team)
  br label %joined
joined:
  call void @learn_lateness(i64 %split.at, double %alone.takes)
  br label %done
done:
  call void @remember(ptr %pace, ptr %cost.at)
  %stopped = load i64, ptr %stopped.at
  %was.stopped = icmp ne i64 %stopped, 0
  %reached = load atomic i64, ptr %next.at monotonic, align 8
  %missing = icmp slt i64 %reached, %end
  %left = zext i1 %missing to i32
  %status = select i1 %was.stopped, i32 2, i32 %left
  ret i32 %status
}

; Returns how many ticks a split launch has lately lost, half of it forgotten in every @ticks_forget.
define internal i64 @lateness() #0 {
entry:
  %late = load atomic i64, ptr @late monotonic, align 8
  %half = load i64, ptr @ticks_forget
  %never = icmp eq i64 %late, 0
  %off = icmp eq i64 %half, 0
  %none = or i1 %never, %off
  br i1 %none, label %nothing, label %fade
fade:
  %now = call i64 @ticks()
  %since = load atomic i64, ptr @late_since monotonic, align 8
  %elapsed = sub i64 %now, %since
  %positive = call i64 @llvm.smax.i64(i64 %elapsed, i64 0)
  %halvings = udiv i64 %positive, %half
  %bounded = call i64 @llvm.umin.i64(i64 %halvings, i64 63)
  %left = lshr i64 %late, %bounded
  ret i64 %left
nothing:
  ret i64 0
}

; Adds a launch split at a time of the clock to the mean: what it took beyond twice the ticks it should take alone (0: not
; known), so that only waiting counts, and not that the threads share the memory.
define internal void @learn_lateness(i64 %split.at, double %alone) #0 {
entry:
  %known = fcmp ogt double %alone, 0.0
  br i1 %known, label %learn, label %done
learn:
  %now = call i64 @ticks()
  %took = sub i64 %now, %split.at
  %took.float = sitofp i64 %took to double
  %twice = fmul double %alone, 2.0
  %beyond = fsub double %took.float, %twice
  %lost.float = call double @llvm.maxnum.f64(double %beyond, double 0.0)
  %lost = fptosi double %lost.float to i64
  %late = call i64 @lateness()
  %difference = sub i64 %lost, %late
  %part = ashr i64 %difference, 5
  %new = add i64 %late, %part
  store atomic i64 %new, ptr @late monotonic, align 8
  store atomic i64 %now, ptr @late_since monotonic, align 8
  br label %done
done:
  ret void
}

; Keeps what a program cost, of a cheaper launch 7/8, of a dearer one no more than 4 times what was known: one launch that
; something held up counts little, and one with little to do among large ones does not make these begin alone.
define internal void @remember(ptr %pace, ptr %cost.at) #0 {
entry:
  %cost = load atomic double, ptr %cost.at monotonic, align 8
  %measured = fcmp ogt double %cost, 0.0
  %kept = icmp ne ptr %pace, null
  %both = and i1 %measured, %kept
  br i1 %both, label %mix, label %done
mix:
  %before = load double, ptr %pace
  %first = fcmp oeq double %before, 0.0
  %most = fmul double %before, 4.0
  %more = fcmp olt double %cost, %most
  %damped = select i1 %more, double %cost, double %most
  %difference = fsub double %before, %cost
  %eighth = fmul double %difference, 0.125
  %mean = fadd double %cost, %eighth
  %less = fcmp olt double %cost, %before
  %mixed = select i1 %less, double %mean, double %damped
  %new = select i1 %first, double %cost, double %mixed
  store double %new, ptr %pace
  br label %done
done:
  ret void
}

declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.umax.i64(i64, i64)
declare double @llvm.maxnum.f64(double, double)
declare i64 @llvm.ctlz.i64(i64, i1)

attributes #0 = { nounwind uwtable }
attributes #1 = { nounwind uwtable noinline }
