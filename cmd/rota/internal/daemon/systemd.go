package daemon

import (
	"net"
	"os"
	"strconv"
	"time"

	"github.com/sirupsen/logrus"
)

const (
	// readyInterval is the pause between two looks at whether the worker is ready.
	readyInterval = 100 * time.Millisecond

	// notifyTimeout bounds the sending of one message, so that a full socket does not hold up the worker. The SdNotify of
	// go-systemd has no bound.
	notifyTimeout = time.Second
)

// systemd tells the service manager that started the worker how the worker is doing, as sd_notify(3) describes. With
// Type=notify, a start of the unit ends when the worker is ready, so that units start and restart one after the other.
type systemd struct {
	conn     net.Conn
	watchdog time.Duration // pause between two signs of life; 0 without WatchdogSec=
	ready    func() error
	log      logrus.FieldLogger
}

// NotifySystemd sends READY=1 when ready first returns nil, STOPPING=1 when stopping is closed, and WATCHDOG=1 until
// stop is called, if the unit asks for it. It does nothing if no service manager has set NOTIFY_SOCKET.
func NotifySystemd(stopping <-chan struct{}, ready func() error, log logrus.FieldLogger) (stop func()) {
	socket := os.Getenv("NOTIFY_SOCKET")
	if socket == "" {
		return func() {}
	}
	conn, err := net.Dial("unixgram", socket) // "@" begins the name of an abstract socket, for systemd as for Go
	if err != nil {
		log.WithError(err).Warn("notify systemd: a unit of Type=notify will not start")
		return func() {}
	}
	s := &systemd{conn: conn, watchdog: watchdogInterval(), ready: ready, log: log}
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		s.run(stopping, ended)
	}()
	return func() {
		close(ended)
		<-done
	}
}

// watchdogInterval is half the time after which the service manager gives the process up, as sd_watchdog_enabled(3)
// recommends, or 0 if it watches no process, or another one.
func watchdogInterval() time.Duration {
	if pid := os.Getenv("WATCHDOG_PID"); pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return 0
	}
	micros, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64)
	if err != nil || micros <= 0 {
		return 0
	}
	return max(time.Duration(micros)*time.Microsecond/2, time.Millisecond)
}

// run sends signs of life while the worker waits for its database, too: a restart would not bring the database back.
func (s *systemd) run(stopping, ended <-chan struct{}) {
	defer s.conn.Close()
	look := time.NewTicker(readyInterval)
	defer look.Stop()
	var alive <-chan time.Time
	if s.watchdog > 0 {
		ticker := time.NewTicker(s.watchdog)
		defer ticker.Stop()
		alive = ticker.C
	}
	looks := look.C
	for {
		select {
		case <-ended:
			select {
			case <-stopping: // the worker had nothing in flight: both came at once
				s.send("STOPPING=1")
			default:
			}
			return
		case <-stopping:
			s.send("STOPPING=1")
			stopping, looks = nil, nil
		case <-alive:
			s.send("WATCHDOG=1")
		case <-looks:
			if s.ready() == nil {
				s.send("READY=1")
				looks = nil
			}
		}
	}
}

func (s *systemd) send(state string) {
	err := s.conn.SetWriteDeadline(time.Now().Add(notifyTimeout))
	if err == nil {
		_, err = s.conn.Write([]byte(state))
	}
	if err != nil {
		s.log.WithError(err).Warnf("notify systemd: %s not sent", state)
	}
}
