package testdb

import "syscall"

// inMemory returns a directory whose files are in memory and in which so many bytes are free, or "" if there is none.
func inMemory(bytes uint64) string {
	const dir, tmpfs = "/dev/shm", 0x01021994
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil || fs.Type != tmpfs || fs.Bavail*uint64(fs.Bsize) < bytes {
		return ""
	}
	return dir
}
