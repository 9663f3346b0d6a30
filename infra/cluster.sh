#!/usr/bin/env bash
# A local cluster of real processes: NATS, Redis, and the four services, each
# INSTANCES times (default 2). Everything it writes is below .dev; logs are in
# .dev/log. For development: no authentication, this machine only.
#
#   infra/cluster.sh build|up|down|status|clean
set -euo pipefail
cd "$(dirname "$0")/.."

readonly services=(history matching timer frontend)
readonly instances=${INSTANCES:-2} nats_port=${NATS_PORT:-4222} redis_port=${REDIS_PORT:-6390}
readonly url=nats://127.0.0.1:$nats_port
readonly pids=.dev/pid logs=.dev/log

build() {
	mkdir -p bin
	go build -o bin/ ./infra/yard
	for s in "${services[@]}"; do go build -o bin/ "./services/$s/cmd/$s"; done
}

alive() { [[ -f $pids/$1 ]] && kill -0 "$(<"$pids/$1")" 2>/dev/null; }

# start NAME COMMAND...: in the background, once.
start() {
	local name=$1
	shift
	if alive "$name"; then
		echo "$name runs already"
		return
	fi
	"$@" >>"$logs/$name.log" 2>&1 &
	echo $! >"$pids/$name"
	echo "started $name (pid $!)"
}

stop() {
	local name=$1 pid
	alive "$name" || { rm -f "$pids/$name"; return 0; }
	pid=$(<"$pids/$name")
	kill "$pid"
	for _ in {1..300}; do
		kill -0 "$pid" 2>/dev/null || break
		sleep 0.1
	done
	if kill -9 "$pid" 2>/dev/null; then echo "$name did not stop and was killed"; else echo "stopped $name"; fi
	rm -f "$pids/$name"
}

up() {
	build
	mkdir -p "$pids" "$logs" .dev/redis
	command -v redis-server >/dev/null || { echo "redis-server is not installed; on Debian: apt-get install redis-server" >&2; exit 1; }
	start nats bin/yard server nats --data-dir .dev/nats --port "$nats_port"
	# Redis holds nothing that cannot be rebuilt: it need not write to disk.
	start redis redis-server --port "$redis_port" --bind 127.0.0.1 --save "" --appendonly no --dir .dev/redis
	for ((i = 1; i <= instances; i++)); do
		for s in "${services[@]}"; do
			local own=()
			[[ $s == matching ]] && own=("--redis.addrs=127.0.0.1:$redis_port")
			start "$s-$i" "bin/$s" "--nats.url=$url" "--node=$s-$i" --http=127.0.0.1:0 "${own[@]}"
		done
	done
	for _ in {1..60}; do
		if bin/yard status --url "$url" >/dev/null 2>&1; then
			bin/yard status --url "$url"
			echo "ready at $url"
			return
		fi
		sleep 0.5
	done
	bin/yard status --url "$url" || true
	echo "not ready after 30 s; the logs are in $logs" >&2
	exit 1
}

down() {
	for s in frontend timer matching history; do
		for ((i = instances; i >= 1; i--)); do stop "$s-$i"; done
	done
	stop redis
	stop nats
}

status() {
	for file in "$pids"/*; do
		[[ -e $file ]] || { echo "nothing was started"; exit 1; }
		name=${file##*/}
		if alive "$name"; then echo "$name pid $(<"$file")"; else echo "$name is gone; see $logs/$name.log"; fi
	done
	bin/yard status --url "$url"
}

case ${1:-} in
build | up | down | status) "$1" ;;
clean)
	down
	rm -rf .dev
	;;
*)
	sed -n '2,6s/^# \{0,1\}//p' "$0"
	exit 2
	;;
esac
