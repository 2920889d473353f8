// Package witness proves that a process of this host has ended, so that other servers need not wait until it has been
// silent for its judge_dead_interval (S15).
//
// Each process holds a lock on a file of its own in a directory that the workers of the host share. The kernel releases
// the lock when the process has ended, however it ended, and not before its last thread has stopped. So a process that
// finds the file without a lock knows that the other one works nothing any more. A child process inherits the lock: as
// long as it runs, its parent counts as running.
//
// A child that closes the descriptors that it inherits gives up the lock, and so does a child that starts its own
// children without them. Python's subprocess does this by default: once the parent has ended, its grandchild is not
// covered. The kernel has no lock that a process cannot close. A process group or a session would not help, because
// such programs leave these, too, and a cgroup needs rights that a worker does not have.
//
// # Why a free lock is a proof
//
// The file gets its name after it is locked, and nobody ever locks it again. So a file that has a name and no lock has
// lost its process, for good. The row in schedule_server names the file by the boot of the kernel, the device, the
// inode and a random name. While the process runs, it has the file open, and no other file on the same kernel can have
// the same device and inode. So a file that was made anew, copied or restored is another file, and proves nothing.
//
// What proves nothing: a file of another boot, a file that cannot be opened or tried, a directory on a file system
// that is not known to be local. The servers then wait for judge_dead_interval, as without a witness.
//
// # What is not promised
//
// The proof is about one kernel. A virtual machine that is cloned while it runs, and a process that is checkpointed and
// restored, have two lives with one lock: do not use a witness there. The proof says nothing about what the database
// still executes for the ended process; fenced transactions hold their rows, so that the new owner waits for them.
//
// It needs Linux. On other systems Open returns ErrUnsupported.
//
// # Sources
//
// flock(2) and inotify(7): the lock belongs to the open file, is inherited by fork and released with the last copy of
// the descriptor. inotify reports the close before the kernel releases the lock, so that the witness tries several
// times.
package witness
