# Keeps one private database server for the process at the other end of stdin.
#
# The environment gives KIND, PORT and DIR, a directory that is removed at the end; a standby also gets PRIMARY,
# a pgbouncer TARGET, both as connection strings. The script says "ready" when the server answers, then obeys
# one word a line and says "ready" after each: stop (in order), kill (as a crash would), start (again, on the
# same port and data), fill (the disk) and free (it again). If it cannot it says "failed"; DIR/log tells why.
# When stdin ends, and the kernel sees to that however the other process ends, the server is killed.
#
# fsync is off, yet a commit has reached the operating system before it is acknowledged: a crash of the
# server loses nothing, only one of the machine would.

case $KIND in
postgres | standby)
	stop=INT kill=QUIT # QUIT also ends the children and frees shared memory, which KILL would not
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
	# Through the socket in DIR, lest another server that got PORT first should answer.
	ping() { pg_isready -h "$DIR" -p "$PORT" -q; }
	;;
mysql)
	stop=TERM kill=KILL
	prepare() {
		mariadb-install-db --no-defaults --datadir="$DIR/data" --tmpdir="$DIR" \
			--auth-root-authentication-method=normal --skip-name-resolve
	}
	serve() {
		exec mariadbd --no-defaults --datadir="$DIR/data" --tmpdir="$DIR" --socket="$DIR/socket" \
			--pid-file="$DIR/pid" --port="$PORT" --bind-address=127.0.0.1 --skip-name-resolve --skip-log-bin \
			--innodb-flush-method=nosync --innodb-flush-log-at-trx-commit=2 --innodb-doublewrite=0 \
			--innodb-buffer-pool-size=64M --innodb-log-file-size=16M --innodb-fast-shutdown=2 \
			--performance-schema=0 --max-connections=300 --default-time-zone=+00:00 \
			--character-set-server=utf8mb4 --collation-server=utf8mb4_bin
	}
	ping() { mariadb-admin --no-defaults --socket="$DIR/socket" -u root ping; }
	;;
pgbouncer)
	stop=INT kill=KILL
	# One try of a login that failed is repeated after a second, not after fifteen.
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
			ignore_startup_parameters = extra_float_digits
		END
	}
	serve() { exec pgbouncer "$DIR/pgbouncer.ini"; }
	ping() { pg_isready -h "$DIR" -p "$PORT" -q; }
	;;
esac

log() { "$@" </dev/null >>"$DIR/log" 2>&1; }

start() {
	log serve &
	server=$!
	tries=1200 # a minute
	until log ping; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] && kill -0 "$server" || return
		sleep 0.05
	done
}

end() {
	[ "$server" ] || return 0
	kill -CONT "$server" # a stopped process would not see the next signal
	kill -"$1" "$server" # fails for one that has ended by itself
	wait "$server"
	server=
}

fill() { cat /dev/zero >"$DIR/data/filler"; } # until there is no room

obey() {
	start || return
	echo ready
	while read -r word; do
		case $word in
		start) start || return ;;
		stop) log end $stop ;;
		kill) log end $kill ;;
		fill) log fill ;;
		free) rm "$DIR/data/filler" ;;
		esac
		echo ready
	done
}

trap '' PIPE # nobody may be left to read our answers; there is still something to clean up
server=
cd "$DIR" && log prepare && obey || { echo failed; cat; }
log end $kill
rm -rf "$DIR"
