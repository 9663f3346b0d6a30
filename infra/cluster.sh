#!/usr/bin/env bash
# A local cluster of real processes: NATS, Redis, and the four services, each
# INSTANCES times (default 2). Everything it writes is below .dev; logs are in
# .dev/log. For development: this machine only.
#
# By default there is no authentication. With SEALED=1 each process is a user of its own,
# in NATS and in Redis, with the rights it needs and no others; the keys are in .dev/auth.
# USERS names further ones, such as "submitter:shop:web worker:shop:mailer"; `up` again with
# others adds and removes them while the cluster runs.
#
#   infra/cluster.sh build|up|down|status|clean
set -euo pipefail
cd "$(dirname "$0")/.."

readonly services=(history matching timer frontend)
readonly instances=${INSTANCES:-2} nats_port=${NATS_PORT:-4222} redis_port=${REDIS_PORT:-6390} http_port=${HTTP_PORT:-9400}
readonly url=nats://127.0.0.1:$nats_port
readonly pids=.dev/pid logs=.dev/log auth=.dev/auth
# As the services create a cluster: users are rendered for its partitions.
readonly partitions=4

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

# sealed: whether the cluster that was started last is.
sealed() { [[ -f .dev/sealed ]]; }

# seal: write the users of a sealed cluster, and have a NATS that runs read them.
seal() {
	local u users=()
	for u in operator:dev admin:default:dev ${USERS:-}; do users+=(--user "$u"); done
	bin/yard auth render --out "$auth" --history-partitions "$partitions" --matching-shards "$partitions" "${users[@]}"
	touch .dev/sealed
	if alive nats; then kill -HUP "$(<"$pids/nats")"; fi
}

# as USER INBOX: how the yard command logs in.
as() { if sealed; then echo "--nkey=$auth/keys/$1.nk --inbox-prefix=$2"; fi; }

# ask: what the cluster says of its health.
ask() {
	# shellcheck disable=SC2046
	bin/yard status --url "$url" $(as operator.dev _INBOX.o.dev)
}

# http_of NAME NUMBER: where the process serves its metrics and health.
http_of() {
	local n
	for n in "${!services[@]}"; do
		if [[ ${services[n]} == "$1" ]]; then echo "127.0.0.1:$((http_port + n * 10 + $2))"; fi
	done
}

# start_service NAME NUMBER
start_service() {
	local s=$1 flags=("--nats.url=$url" "--node=$1-$2" "--http=$(http_of "$1" "$2")")
	[[ $s == matching ]] && flags+=("--redis.addrs=127.0.0.1:$redis_port")
	if sealed; then
		flags+=("--inbox-prefixes=_INBOX.t.{domain}." --provision.enabled=false "--nats.nkey-seed=$auth/keys/$s.nk" "--nats.inbox-prefix=_INBOX.s.$s")
		[[ $s == matching ]] && flags+=(--redis.username=matching "--redis.password-file=$auth/keys/redis.password")
	fi
	start "$s-$2" "bin/$s" "${flags[@]}"
}

up() {
	local nats_auth=() redis_auth=()
	build
	mkdir -p "$pids" "$logs" .dev/redis
	command -v redis-server >/dev/null || { echo "redis-server is not installed; on Debian: apt-get install redis-server" >&2; exit 1; }
	if alive nats && [[ ${SEALED:+yes} != "$(sealed && echo yes)" ]]; then
		echo "what runs is sealed and SEALED is not set, or the other way round: stop it first, with infra/cluster.sh down" >&2
		exit 1
	fi
	rm -f .dev/sealed
	if [[ -n ${SEALED:-} ]]; then
		seal
		nats_auth=(--auth "$auth/auth.conf") redis_auth=(--aclfile "$PWD/$auth/redis.acl")
	fi
	start nats bin/yard server nats --data-dir .dev/nats --port "$nats_port" "${nats_auth[@]}"
	# Redis holds nothing that cannot be rebuilt: it need not write to disk.
	start redis redis-server --port "$redis_port" --bind 127.0.0.1 --save "" --appendonly no --dir .dev/redis "${redis_auth[@]}"
	# shellcheck disable=SC2046
	if sealed; then start provisioner bin/yard provision --keep --url "$url" $(as provisioner _INBOX.s.provisioner); fi
	for ((i = 1; i <= instances; i++)); do
		for s in "${services[@]}"; do start_service "$s" "$i"; done
	done
	for _ in {1..60}; do
		if ask >/dev/null 2>&1; then
			status
			echo "ready at $url"
			if sealed; then
				echo "as operator:              $(as operator.dev _INBOX.o.dev)"
				echo "as admin of default:      $(as admin.default.dev _INBOX.t.default.admin-dev)"
			fi
			return
		fi
		sleep 0.5
	done
	ask || true
	echo "not ready after 30 s; the logs are in $logs" >&2
	exit 1
}

down() {
	for s in frontend timer matching history; do
		for ((i = instances; i >= 1; i--)); do stop "$s-$i"; done
	done
	stop provisioner
	stop redis
	stop nats
}

status() {
	for file in "$pids"/*; do
		[[ -e $file ]] || { echo "nothing was started"; exit 1; }
		name=${file##*/}
		if ! alive "$name"; then
			echo "$name is gone; see $logs/$name.log"
			continue
		fi
		http=$(http_of "${name%-*}" "${name##*-}")
		echo "$name pid $(<"$file")${http:+, metrics at http://$http/metrics}"
	done
	ask
}

case ${1:-} in
build | up | down | status) "$1" ;;
clean)
	down
	rm -rf .dev
	;;
*)
	sed -n '2,11s/^# \{0,1\}//p' "$0"
	exit 2
	;;
esac
