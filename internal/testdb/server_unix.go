//go:build unix

package testdb

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// isolate gives the keeper a process group of its own and, for root, an unprivileged user that owns the directory,
// and a disk of the plan's megabytes. With its own group, the keeper does not get the Ctrl-C for the tests before they
// have ended. No other user may read the cache of root, so that what is there runs as root.
func isolate(cmd *exec.Cmd, p plan, dir, script string) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if os.Geteuid() != 0 || engines[p.kind].cached {
		return nil
	}
	nobody, err := unprivileged(dir, script)
	if err != nil {
		return err
	}
	cmd.SysProcAttr.Credential = nobody
	if p.disk > 0 {
		onDisk(cmd, p.disk, script)
	}
	return nil
}

// onDisk gives the keeper a disk of its own, in memory. It is mounted in a private namespace and ends with the
// keeper. A shell beside the keeper stays root, to clean up.
func onDisk(cmd *exec.Cmd, megabytes int, script string) {
	user := cmd.SysProcAttr.Credential
	cmd.SysProcAttr.Credential = nil
	cmd.Args = []string{"unshare", "--mount", "--propagation", "private", "/bin/sh", "-c", fmt.Sprintf(
		`mkdir "$DIR/data" && mount -t tmpfs -o size=%dm,mode=700,uid=%d,gid=%d tmpfs "$DIR/data" &&
		setpriv --reuid %[2]d --regid %[3]d --clear-groups /bin/sh "$0"
		umount "$DIR/data"; rm -rf "$DIR"`, megabytes, user.Uid, user.Gid), script}
	cmd.Path = "/usr/bin/unshare"
}

// unprivileged returns the user nobody and gives the files to it. PostgreSQL refuses to run as root.
func unprivileged(files ...string) (*syscall.Credential, error) {
	nobody, err := user.Lookup("nobody")
	if err != nil {
		return nil, err
	}
	uid, err := strconv.Atoi(nobody.Uid)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.Atoi(nobody.Gid)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if err := os.Chown(file, uid, gid); err != nil {
			return nil, err
		}
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}
