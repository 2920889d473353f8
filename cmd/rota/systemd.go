package main

import (
	"os"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/sirupsen/logrus"
)

// readyInterval is the pause between two looks at whether the worker is ready.
const readyInterval = 100 * time.Millisecond

// notifySystemd tells the service manager that started the worker how the worker is doing, as sd_notify(3) describes. With
// Type=notify, a start of the unit ends when the worker is ready, so that units start and restart one after the other.
//
// It sends READY=1 when ready first returns nil, STOPPING=1 when stopping is closed, and WATCHDOG=1 until stop is called,
// if the unit asks for it. It does nothing if no service manager has set NOTIFY_SOCKET.
func notifySystemd(stopping <-chan struct{}, ready func() error, log logrus.FieldLogger) (stop func()) {
	if os.Getenv("NOTIFY_SOCKET") == "" {
		return func() {}
	}
	send := func(state string) {
		if _, err := daemon.SdNotify(false, state); err != nil {
			log.WithError(err).Warnf("notify systemd: %s not sent", state)
		}
	}
	limit, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		log.WithError(err).Warn("notify systemd: no signs of life are sent")
	}
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		reportToSystemd(stopping, ended, ready, limit/2, send) // half the limit, as sd_watchdog_enabled(3) recommends
	}()
	return func() {
		close(ended)
		<-done
	}
}

// reportToSystemd sends signs of life, unless their interval is 0, while the worker waits for its database, too: a restart
// would not bring the database back.
func reportToSystemd(stopping, ended <-chan struct{}, ready func() error, interval time.Duration, send func(state string)) {
	look := time.NewTicker(readyInterval)
	defer look.Stop()
	var alive <-chan time.Time
	if interval > 0 {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		alive = ticker.C
	}
	looks := look.C
	for {
		select {
		case <-ended:
			return
		case <-stopping:
			send(daemon.SdNotifyStopping)
			stopping, looks = nil, nil
		case <-alive:
			send(daemon.SdNotifyWatchdog)
		case <-looks:
			if ready() == nil {
				send(daemon.SdNotifyReady)
				looks = nil
			}
		}
	}
}
