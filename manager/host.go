package manager

import (
	"fmt"
	"net"
	"os"
	"runtime/debug"

	"github.com/google/uuid"
)

// newUUID returns an id that people can read in a SELECT: the host, the process ID and eight random digits.
func newUUID(host string) string {
	id := uuid.New()
	return fmt.Sprintf("%.100s:%d:%x", host, os.Getpid(), id[12:])
}

// hostIP returns an address that tells operators which host this is, or "".
func hostIP() string {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return ""
	}
	for _, a := range addrs {
		if ip, ok := a.(*net.IPNet); ok && !ip.IP.IsLoopback() && ip.IP.To4() != nil {
			return ip.IP.String()
		}
	}
	return ""
}

func hostName() string {
	name, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return name
}

// libraryVersion returns the version of this module in the running program.
func libraryVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == "github.com/dutyrota/rota" {
			return m.Version
		}
	}
	return ""
}
