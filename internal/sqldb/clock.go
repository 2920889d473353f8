package sqldb

import "time"

// FileClock is the clock of databases in files, which have no server: it is that of the process. Package internal/sim
// replaces it before it opens one, in order to set it.
var FileClock = time.Now
