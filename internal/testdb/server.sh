# Keeps one private database server for the process at the other end of stdin.
#
# The environment has KIND, PORT and DIR, a directory that the script removes at the end. A standby also gets PRIMARY,
# and a pgbouncer TARGET, both as connection strings. A galera gets SERVE, its options as a node of a cluster, and the
# first node FIRST, the option that makes a new cluster at the first start. An etcd gets PEER, a second port. A patroni
# gets ETCD, a host and port, NAME and REST, the port of its API. A server whose clock can be set gets CLOCK, the library
# of libfaketime. The script prints "ready" when the server answers. Then it obeys one word per line and prints "ready"
# after each: stop (in order), kill (as a crash does), start (again, with the same port and data), save and restore (the
# data of a stopped server), freeze and thaw (its process), fill (the disk), free (the disk), and "clock +60", which puts
# the server's clock a minute ahead of the machine's. If that fails it prints "failed", and DIR/log has the cause. When stdin ends, the script
# kills the server. The kernel ends stdin whenever the other process ends.
#
# fsync is off. A commit has still reached the operating system before it is acknowledged: a crash of the server loses
# nothing, and only a crash of the machine does.

case $KIND in
postgres | standby)
	stop=INT kill=QUIT # QUIT, unlike KILL, also ends the children and frees shared memory
	prepare() {
		if [ $KIND = standby ]; then
			pg_basebackup -D "$DIR/data" -d "$PRIMARY" -R -c fast --no-sync
		else
			initdb -D "$DIR/data" -U postgres -A trust -E UTF8 --no-locale --no-sync --no-instructions $INITDB
		fi
	}
	serve() {
		exec postgres -D "$DIR/data" -p "$PORT" -c listen_addresses=127.0.0.1 \
			-c unix_socket_directories="$DIR" -c fsync=off -c full_page_writes=off \
			-c shared_buffers=64MB -c max_connections=200 -c autovacuum=off -c timezone=UTC -c jit=off $SERVE
	}
	# Ask through the socket in DIR: another server may have taken PORT first.
	ping() { pg_isready -h "$DIR" -p "$PORT" -q; }
	;;
mysql)
	stop=TERM kill=KILL
	# A copy takes a tenth of the time.
	prepare() {
		data=$(dirname "$(command -v mysqld)")/data
		if [ -d "$data" ]; then
			cp -R "$data" "$DIR/data"
			return
		fi
		echo "CREATE USER root@'%' IDENTIFIED BY ''; GRANT ALL ON *.* TO root@'%' WITH GRANT OPTION; CREATE DATABASE test" >"$DIR/init"
		daemon command --initialize-insecure --init-file="$DIR/init"
	}
	serve() { daemon exec --skip-name-resolve $SERVE; }
	# Usage: daemon exec|command OPTION ... Of the performance schema, only the list of sessions is on. Tables without a
	# file of their own, and no threads that spin for the log, take a seventh of the processor time away.
	daemon() {
		how=$1
		shift
		$how mysqld --no-defaults --user="$(id -un)" --datadir="$DIR/data" --tmpdir="$DIR" --socket="$DIR/socket" \
			--pid-file="$DIR/pid" --port="$PORT" --bind-address=127.0.0.1 --mysqlx=OFF --secure-file-priv= \
			--skip-log-bin --innodb-flush-method=nosync --innodb-flush-log-at-trx-commit=1 --innodb-doublewrite=0 \
			--innodb-buffer-pool-size=64M --innodb-redo-log-capacity=16M --innodb-fast-shutdown=2 \
			--innodb-file-per-table=OFF --innodb-log-writer-threads=OFF \
			--performance-schema-instrument=%=OFF --max-connections=300 --default-time-zone=+00:00 \
			--character-set-server=utf8mb4 --collation-server=utf8mb4_bin "$@"
	}
	ping() { mysqladmin --no-defaults --socket="$DIR/socket" -u root ping; }
	;;
mariadb | galera)
	stop=TERM kill=KILL
	prepare() {
		if [ $KIND = galera ] && [ -z "$FIRST" ]; then
			mkdir "$DIR/data" # the node copies the data of another one when it joins
			return
		fi
		mariadb-install-db --no-defaults --datadir="$DIR/data" --tmpdir="$DIR" \
			--auth-root-authentication-method=normal --skip-name-resolve
	}
	serve() {
		position=
		if [ $KIND = galera ] && [ -z "$FIRST" ] && [ -e "$DIR/data/ibdata1" ]; then
			position=$(daemon command --wsrep-recover 2>&1 | sed -n 's/.*Recovered position: */--wsrep-start-position=/p')
		fi
		daemon exec $FIRST $position
	}
	# Usage: daemon exec|command OPTION ...
	daemon() {
		how=$1
		shift
		$how mariadbd --no-defaults --datadir="$DIR/data" --tmpdir="$DIR" --socket="$DIR/socket" \
			--pid-file="$DIR/pid" --port="$PORT" --bind-address=127.0.0.1 --skip-name-resolve --skip-log-bin \
			--innodb-flush-method=nosync --innodb-flush-log-at-trx-commit=1 --innodb-doublewrite=0 \
			--innodb-buffer-pool-size=64M --innodb-log-file-size=16M --innodb-fast-shutdown=2 \
			--performance-schema=0 --max-connections=300 --default-time-zone=+00:00 \
			--character-set-server=utf8mb4 --collation-server=utf8mb4_bin $SERVE "$@"
	}
	ping() {
		if [ $KIND = mariadb ]; then
			mariadb-admin --no-defaults --socket="$DIR/socket" -u root ping
		else
			mariadb --no-defaults --socket="$DIR/socket" -u root -e "SHOW STATUS LIKE 'wsrep_local_state_comment'" | grep Synced
		fi
	}
	;;
tidb)
	stop=TERM kill=KILL
	prepare() { mkdir "$DIR/data"; }
	serve() {
		exec tidb-server -store unistore -path "$DIR/data" -P "$PORT" -host 127.0.0.1 -socket "$DIR/socket" \
			-report-status=false -L error
	}
	ping() {
		mariadb --no-defaults --socket="$DIR/socket" -u root -e "SET GLOBAL tidb_enable_check_constraint = ON"
	}
	;;
etcd)
	stop=TERM kill=KILL
	prepare() { mkdir "$DIR/data"; }
	serve() {
		exec etcd --name etcd --data-dir "$DIR/data" --initial-cluster "etcd=http://127.0.0.1:$PEER" \
			--listen-peer-urls "http://127.0.0.1:$PEER" --initial-advertise-peer-urls "http://127.0.0.1:$PEER" \
			--listen-client-urls "http://127.0.0.1:$PORT" --advertise-client-urls "http://127.0.0.1:$PORT"
	}
	ping() { get "http://127.0.0.1:$PORT/health"; }
	;;
patroni)
	stop=TERM kill=KILL
	# The shortest times that Patroni allows.
	prepare() {
		cat >"$DIR/patroni.yml" <<-END
			scope: rota
			name: $NAME
			restapi: {listen: "127.0.0.1:$REST", connect_address: "127.0.0.1:$REST"}
			etcd3: {host: "$ETCD"}
			bootstrap:
			  dcs:
			    {ttl: 20, loop_wait: 1, retry_timeout: 3, synchronous_mode: true, postgresql: {use_pg_rewind: true}}
			  initdb: [{auth: trust}, {encoding: UTF8}, {locale: C}]
			postgresql:
			  listen: "127.0.0.1:$PORT"
			  connect_address: "127.0.0.1:$PORT"
			  bin_dir: "$(dirname "$(command -v postgres)")"
			  data_dir: "$DIR/data"
			  pgpass: "$DIR/pgpass"
			  authentication: {superuser: {username: postgres}, replication: {username: postgres}}
			  pg_hba: ["local all all trust", "host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"]
			  parameters:
			    {unix_socket_directories: "$DIR", fsync: "off", shared_buffers: 64MB, max_connections: 200, jit: "off", timezone: UTC}
		END
	}
	serve() { exec patroni "$DIR/patroni.yml"; }
	ping() { get "http://127.0.0.1:$REST/health"; }
	# PostgreSQL outlives a Patroni that is killed.
	rest() { pg_ctl -D "$DIR/data" -m immediate stop; }
	;;
pgbouncer)
	stop=INT kill=KILL
	# Repeat a failed login after one second instead of fifteen. Close idle connections soon: each database has some.
	prepare() {
		cat >"$DIR/pgbouncer.ini" <<-END
			[databases]
			* = $TARGET
			[pgbouncer]
			listen_addr = 127.0.0.1
			listen_port = $PORT
			unix_socket_dir = $DIR
			auth_type = any
			pool_mode = transaction
			default_pool_size = 8
			max_client_conn = 1000
			server_login_retry = 1
			server_idle_timeout = 5
			ignore_startup_parameters = extra_float_digits
		END
	}
	serve() { exec pgbouncer "$DIR/pgbouncer.ini"; }
	# Without PORT, it stays up and listens only on the socket in DIR.
	ping() {
		pg_isready -h "$DIR" -p "$PORT" -q || return
		! grep -q "cannot listen" "$DIR/log" || { kill "$server"; false; }
	}
	;;
esac

get() { /usr/bin/python3 -c "import urllib.request; urllib.request.urlopen('$1', timeout=5)"; }

log() { "$@" </dev/null >>"$DIR/log" 2>&1; }

# Usage: clock SECONDS. The server reads the file with each call that asks for the time.
clock() { echo "$1" >"$DIR/clock.next" && mv "$DIR/clock.next" "$DIR/clock"; }

clocked() {
	if [ "$CLOCK" ]; then
		export LD_PRELOAD="$CLOCK" FAKETIME_TIMESTAMP_FILE="$DIR/clock" FAKETIME_NO_CACHE=1 FAKETIME_DISABLE_SHM=1 \
			FAKETIME_DONT_FAKE_MONOTONIC=1
	fi
	serve
}

start() {
	[ -z "$CLOCK" ] || [ -e "$DIR/clock" ] || clock +0
	log clocked &
	server=$!
	FIRST=
	tries=1200 # a minute
	until log ping; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] && kill -0 "$server" || return
		sleep 0.05
	done
}

end() {
	[ "$server" ] || return 0
	kill -CONT "$server" # a stopped process does not get the next signal
	kill -"$1" "$server" # fails if the server has ended already
	wait "$server"
	server=
	[ $KIND != patroni ] || rest
}

save() { rm -rf "$DIR/saved" && cp -a "$DIR/data" "$DIR/saved"; }

restore() { rm -rf "$DIR/data" && cp -a "$DIR/saved" "$DIR/data"; }

fill() { cat /dev/zero >"$DIR/data/filler"; } # until there is no room

obey() {
	start || return
	echo ready
	while read -r word; do
		case $word in
		start) start || return ;;
		stop) log end $stop ;;
		kill) log end $kill ;;
		save) log save || return ;;
		restore) log restore || return ;;
		freeze) kill -STOP "$server" ;;
		thaw) kill -CONT "$server" ;;
		fill) log fill ;;
		free) rm "$DIR/data/filler" ;;
		clock*) clock "${word#clock }" ;;
		esac
		echo ready
	done
}

trap '' PIPE # clean up even if no process is left to read the answers
server=
cd "$DIR" && log prepare && obey || { echo failed; cat; }
log end $kill
rm -rf "$DIR"
