package centertest

import (
	"testing"

	"github.com/dutyrota/rota/center"
)

// group is cases in one function. Either run or runURL is set.
type group struct {
	run    func(t *testing.T, c *center.Center)
	runURL func(t *testing.T, c *center.Center, url string) // if the cases open more Centers than c
	about  Subject
}

// groups are all cases, by the files of their functions. They run in random order, so that no group relies on another.
var groups = map[string]group{
	// cases_define.go
	"define":                {run: testDefine, about: Session},
	"H6 epochs":             {run: testNewEpochs, about: Session},
	"own_sign definition":   {runURL: testOwnSigns},
	"L1 concurrent workers": {run: testConcurrent, about: Session},

	// cases_rebalance.go
	"rebalance":           {run: testRebalance, about: Session},
	"hand edits":          {run: testHandEdits, about: Session},
	"stalled transaction": {run: testStalledTransaction, about: Session},
	"skipped rows":        {run: testSkippedRows, about: Session},

	// cases_lock.go
	"lock row":    {run: testLockRow, about: Clock | Session},
	"lock reason": {run: testLockReason, about: Clock | Session},
	"snapshot":    {run: testSnapshot, about: Clock | Session},

	// cases_heartbeat.go
	"heartbeat reply":   {run: testHeartbeatReply, about: Clock | Session},
	"heartbeat changes": {run: testHeartbeatChanges, about: Clock | Session},
	"watch range":       {run: testWatchRange, about: Clock | Session},
	"heartbeat row":     {run: testHeartbeatRow, about: Clock | Session},

	// cases_expiry.go
	"expiry":       {run: testExpiry, about: Clock},
	"crash counts": {run: testCrashCounts, about: Clock},
	"requests":     {run: testRequests, about: Clock},
	"failing":      {run: testFailingQueue, about: Clock},
	"watch":        {run: testWatch, about: Clock},

	// cases_handover.go
	"release":           {run: testRelease, about: Session},
	"release guard":     {run: testReleaseGuard, about: Session},
	"retake":            {run: testRetake, about: Session},
	"leave":             {run: testLeave, about: Session},
	"pending hand-over": {run: testPendingHandovers},

	// cases_history.go
	"H7 witnesses":     {run: testHistoryWitnesses, about: Session},
	"H8 raised epochs": {run: testRaisedEpochs, about: Session},
	"H8 low queues":    {run: testQueuesBelowTheFloor, about: Session},

	// cases_hung.go
	"hung queues":      {run: testHungQueues, about: Session},
	"hung queues seen": {run: testHungQueuesSeen, about: Clock},

	// cases_weight.go
	"P2 weights":  {run: testWeight, about: Session},
	"P12 standby": {run: testStandby, about: Session},

	// cases_planner.go
	"P11 planner versions": {run: testPlannerVersions, about: Session},

	// cases_load.go
	"load": {run: testLoad, about: Session},

	// cases_totals.go
	"P15 totals": {run: testTotals, about: Session},

	// cases_labels.go
	"P14 labels":         {run: testLabels, about: Session},
	"P14 spread":         {run: testSpread, about: Session},
	"P14 pins by labels": {run: testPinnedByLabels, about: Session},
	"H2 labels":          {run: testLabelsAtRelease, about: Session},

	// cases_pin.go
	"P14 pins":        {runURL: testPins},
	"P14 pin at once": {run: testPinAtOnce, about: Session},

	// cases_reserved.go
	"P13 reserved queues":  {run: testReserved, about: Session},
	"P13 reservations end": {run: testReservationsEnd, about: Session},
	"P13 nothing reserved": {run: testNothingToReserve, about: Session},
	"P13 leaving servers":  {run: testLeavingServers, about: Session},

	// cases_witness.go
	"S15 witness": {run: testWitness, about: Session},

	// cases_in_flight.go
	"P10 shares":  {run: testInFlight, about: Clock | Session},
	"P10 servers": {run: testInFlightServers, about: Session},
	"P10 seen":    {run: testInFlightSeen, about: Clock | Session},
	"P10 limit":   {run: testInFlightSetting, about: Session},

	// cases_walk.go
	"P5 walk": {run: testWalk, about: Clock},

	// cases_invalid.go; RunUnconstrained has the others
	"S13 constraints": {run: testConstraints},

	// cases_times.go
	"S17 times": {run: testTimesAhead},

	// cases_text.go
	"X12 texts": {runURL: testTexts},

	// cases_repartition.go
	"repartition":          {run: testRepartition},
	"repartition requests": {run: testRepartitionRequests},

	// cases_resize.go
	"N3 split":    {run: testSplit, about: Session},
	"N3 merge":    {run: testMerge, about: Clock | Session},
	"N3 requests": {run: testResizeRequests},
	"N3 runs":     {run: testResizeInRun, about: Session},

	// cases_suit.go
	"N3 suit": {run: testSuit},

	// cases_limits.go
	"X11 limits":          {run: testQueueLimits, about: Session},
	"repartition cursors": {run: testRepartitionCursors},
	"repartition errors":  {run: testRepartitionErrors},

	// cases_queue.go
	"add queue":              {run: testAddQueue, about: Clock},
	"remove queue":           {run: testRemoveQueue, about: Clock},
	"remove ownerless queue": {run: testRemoveOwnerless, about: Clock},
	"queue errors":           {run: testQueueErrors, about: Clock},

	// cases_operate.go
	"pause":        {run: testPause},
	"S4 retention": {run: testRetention, about: Clock},

	// cases_alert.go
	"S9 alert":                 {run: testAlert, about: Clock},
	"S16 episodes":             {run: testEpisodes, about: Clock},
	"S16 end of a crash alert": {run: testCrashAlertEnds, about: Clock},

	// cases_ownsign.go
	"S7 own_sign expiry": {runURL: testOwnSignExpiry, about: Clock},
	"drain server":       {run: testDrainServer, about: Session},
	"force":              {run: testForce, about: Session},
	"force held":         {run: testForceHeld, about: Session},

	// cases_fence.go
	"fence":          {run: Fence, about: Session},
	"shared fence":   {run: testShareFence, about: Session},
	"F2 no roster":   {run: testNoRoster, about: Session},
	"in tx":          {run: testInTx, about: Session},
	"in tx deadlock": {run: testInTxDeadlock, about: Session},

	// cases_exec_fenced.go
	"exec fenced": {runURL: testExecFenced, about: Session},

	// cases_item.go, cases_item_moved.go, cases_item_many.go
	"failed items":         {run: testFailedItems, about: Clock},
	"item keys":            {run: testItemKeys},
	"X6 moved items":       {run: testMovedItems},
	"X6 S14 started items": {run: testStartedItems},
	"item retention":       {run: testItemRetention, about: Clock},
	"item chunks":          {run: testItemChunks},
	"many failed items":    {run: testManyFailedItems, about: Clock},
	"F4 cursor":            {run: testCursor, about: Session},

	// cases_apply.go
	"apply":          {run: testApply},
	"apply new":      {run: testApplyNew},
	"H6 delete task": {run: testDeleteTask, about: Clock},

	// cases_inspect.go, cases_inspect_run.go
	"inspect":      {run: testInspect, about: Clock},
	"events":       {run: testEvents, about: Clock},
	"inspect runs": {run: testInspectRuns, about: Clock},
	"run days":     {run: testRunDays},
	"run lists":    {run: testRunLists, about: Clock},

	// cases_doctor.go
	"P8 preview":        {run: testPreview, about: Clock},
	"diagnose":          {run: testDiagnose, about: Clock | Session},
	"diagnose settings": {run: testDiagnoseSettings},
	"diagnose servers":  {run: testDiagnoseServers},
	"diagnose removal":  {run: testDiagnoseRemoval},

	// cases_run.go
	"run lifecycle": {run: testRunLifecycle, about: Clock},
	"run opening":   {run: testRunOpening, about: Clock},
	"run pause":     {run: testRunPause, about: Clock},
	"run errors":    {run: testRunErrors, about: Clock},

	// cases_run_sweep.go
	"sweep claims":     {run: testSweepClaims, about: Clock | Session},
	"sweep suspension": {run: testSweepSuspension, about: Clock | Session},
	"sweep fence":      {run: testSweepFence, about: Clock | Session},
	"sweep cursor":     {run: testSweepCursor, about: Clock | Session},
	"sweep retries":    {run: testSweepRetries, about: Clock | Session},

	// cases_run_end.go
	"submission":    {run: testSubmission, about: Clock}, // cases_run_submit.go
	"run finaliser": {runURL: testRunFinaliser, about: Clock},
	"run end":       {run: testRunEnd, about: Clock},
	"rerun":         {run: testRerun, about: Clock},
	"run retention": {run: testRunRetention, about: Clock},

	// cases_run_problem.go
	"run problems":     {run: testRunProblems, about: Clock},
	"alert failures":   {run: testAlertFailures, about: Clock},
	"acknowledge runs": {run: testAckRuns, about: Clock},
	"acked runs":       {run: testAckedRuns, about: Clock},
	"cancelled runs":   {run: testCancelledRuns, about: Clock},
	"overdue runs":     {run: testOverdueRuns, about: Clock},
	"stalled runs":     {run: testStalledRuns, about: Clock},
	"trigger problems": {run: testTriggerProblems, about: Clock},

	// cases_run_queues.go
	"named queues in a run": {run: testNamedQueuesInRun},
	"repartition in a run":  {run: testRepartitionInRun},
	"barrier in a run":      {run: testBarrierInRun},
	"hand-over in a run":    {run: testHandoverInRun},

	// cases_mode.go
	"mode change": {run: testModeChange, about: Clock},

	// cases_run_counts.go
	"run counts": {run: testRunCounts, about: Clock | Session},

	// cases_run_item.go
	"run items":      {run: testRunItems, about: Clock},
	"attempt items":  {run: testAttemptItems, about: Clock},
	"many run items": {run: testManyRunItems},

	// cases_run_submit_tx.go
	"submissions":      {run: testSubmitTx, about: Session},
	"submission waits": {run: testSubmitTxWaits},

	// cases_run_graph.go
	"run graph":  {run: testRunGraph},
	"run depend": {run: testDepend},

	// cases_run_skip.go
	"skipped runs":  {run: testSkippedRuns, about: Clock},
	"skipped slots": {run: testSkippedSlots, about: Clock},
	"start limits":  {run: testStartLimits, about: Clock},

	// cases_run_depend.go
	"dependants":             {run: testDependants},
	"upstream ends":          {run: testUpstreamEnds},
	"joins":                  {run: testJoins},
	"joins without triggers": {run: testJoinsWithoutTriggers},
	"joins of joins":         {run: testJoinsOfJoins},
	"dynamic dependencies":   {run: testDynamicDependencies},
	"triggered dependants":   {run: testTriggeredDependants},
	"dependency reruns":      {run: testDependencyReruns},
	"dependency errors":      {run: testDependencyErrors},

	// cases_trigger.go, cases_trigger_slots.go
	"slots of runs":    {run: testSlotOfRun, about: Clock},
	"trigger slots":    {runURL: testTriggerSlots, about: Clock},
	"trigger states":   {run: testTriggerStates, about: Clock},
	"trigger commands": {run: testTriggerCommands, about: Clock},
	"trigger change":   {run: testTriggerChange, about: Clock},
	"trigger errors":   {run: testTriggerErrors, about: Clock},
	"misfires":         {run: testMisfires, about: Clock},
	"overlaps":         {run: testOverlaps, about: Clock},

	// cases_backfill.go
	"backfills":      {run: testBackfills, about: Clock},
	"backfill ticks": {runURL: testBackfillTicks, about: Clock},

	// cases_backfill_slots.go
	"backfilled slots": {run: testBackfillSlots, about: Clock},
	"backfill firings": {run: testBackfillFirings, about: Clock},
	"backfill pages":   {run: testBackfillPages, about: Clock},

	// cases_backfill_end.go
	"backfill ends":      {run: testBackfillEnds, about: Clock},
	"moved trigger":      {run: testBackfillOfMovedTrigger, about: Clock},
	"backfill problems":  {run: testBackfillProblems, about: Clock},
	"backfill retention": {run: testBackfillRetention, about: Clock},

	// cases_backfill_operate.go
	"backfill commands": {run: testBackfillCommands, about: Clock},
	"backfill errors":   {run: testBackfillErrors},

	// cases_backfill_depend.go
	"backfill dependants": {run: testBackfillDependants},
	"backfill graphs":     {run: testBackfillGraphs},

	// cases_schedule.go
	"schedule settings": {runURL: testSchedule, about: Clock},
}
