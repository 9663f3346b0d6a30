package topology

import (
	"strconv"
	"strings"
)

// Redis keys. Each carries the hash tag {domain}, so that all keys of one
// script call live on one node of a Redis Cluster. Redis holds nothing that
// cannot be rebuilt from history.

func tasklistKey(domain, tasklist string, tp int) string {
	return "yard:{" + domain + "}:tl:" + tasklist + ":" + num(tp)
}

// HeadsKey is the zset of a tasklist partition's columns ("<priority>:<column>"), scored by
// their oldest trigger. It exists as long as the tasklist partition holds anything.
func HeadsKey(domain, tasklist string, tp int) string {
	return tasklistKey(domain, tasklist, tp) + ":heads"
}

// ColumnKey is the zset of one column's chunks of packed triggers.
func ColumnKey(domain, tasklist string, tp, priority int, column string) string {
	return tasklistKey(domain, tasklist, tp) + ":col:" + num(priority) + ":" + column
}

// TasklistsKey is the set of a shard's tasklist partitions of a domain that hold anything:
// what a new owner loads.
func TasklistsKey(domain string, shard int) string {
	return "yard:{" + domain + "}:tasklists:" + num(shard)
}

// SlotsKey is the hash of a limit, such as "type/email.send": what each shard holds of it,
// and which shards wait.
func SlotsKey(domain, limit string) string { return "yard:{" + domain + "}:slots:" + limit }

// PerGroupKey is the hash of a limit that counts per group, such as "type/email.send/group": which shards know what they hold of it.
func PerGroupKey(domain, limit string) string { return "yard:{" + domain + "}:pergroup:" + limit }

// GroupSlotsKey is the string of the limit of one group, such as "type/email.send/group/acme". It is there while a shard holds
// slots of it, or waits.
func GroupSlotsKey(domain, limit string) string { return "yard:{" + domain + "}:group:" + limit }

// RateKey is the string of a rate, such as "rate/type/email.send": when the next attempt may start.
func RateKey(domain, limit string) string { return "yard:{" + domain + "}:rate:" + limit }

// EpochKey names the present life of a shard's tables of a domain, and the run of the
// server that it began in. It is missing in a Redis that has lost its memory.
func EpochKey(domain string, shard int) string { return "yard:{" + domain + "}:epoch:" + num(shard) }

// redisCommands are what matching, its readiness and its scripts call, besides what a connection begins with. The tests of
// its tables fail if one is missing, or is not used.
var redisCommands = [...]string{
	"evalsha", "script|load", "ping", "time", "info", "exists", "del", "unlink", "get", "set", "sadd", "srem", "smembers",
	"hget", "hgetall", "hmget", "hset", "zadd", "zrange", "zrem", "zremrangebyrank", "zscore",
}

// redisConnection is what the client library calls by itself: the log-in, the name in CLIENT LIST, and the map
// of a cluster.
var redisConnection = [...]string{"hello", "client|setname", "cluster|slots"}

// RedisACL is a user line for the ACL file of Redis 7 or later, or the arguments of ACL SETUSER: matching may call what
// it needs, on the keys above, and nothing else. PasswordSHA256 is the digest of its password, 64 hexadecimal
// digits. Where this is all that Redis serves, switch the user "default" off ("user default off").
func RedisACL(user, passwordSHA256 string) string {
	var line strings.Builder
	line.WriteString("user " + user + " on #" + passwordSHA256 + " resetchannels resetkeys ~yard:* -@all")
	for _, all := range [][]string{redisConnection[:], redisCommands[:]} {
		for _, command := range all {
			line.WriteString(" +" + command)
		}
	}
	return line.String()
}

// TablesPattern matches all keys of triggering tables, as SCAN takes it.
const TablesPattern = "yard:*"

// TableKey is a key of the triggering tables, read back.
type TableKey struct {
	Domain string
	// Kind is what the key is: "tl", "tasklists", "slots", "pergroup", "group", "rate" or "epoch".
	Kind string
	// Name is what follows the kind, such as a limit, or a shard.
	Name string
}

// TableKeyOf reads a key back; ok is false for keys that are none of ours.
func TableKeyOf(key string) (k TableKey, ok bool) {
	rest, ours := strings.CutPrefix(key, "yard:{")
	domain, rest, closed := strings.Cut(rest, "}:")
	kind, name, named := strings.Cut(rest, ":")
	return TableKey{domain, kind, name}, ours && closed && named && domain != "" && name != ""
}

// TableOfKey reads the tasklist partition of a HeadsKey or ColumnKey, whose Kind is "tl", and the column, as HeadsKey's set names it; "" is the set's own key.
func (k TableKey) TableOfKey() (tasklist string, partition int, column string, ok bool) {
	tasklist, rest, _ := strings.Cut(k.Name, ":")
	number, rest, ok := strings.Cut(rest, ":")
	partition, err := strconv.Atoi(number)
	if k.Kind != "tl" || !ok || err != nil {
		return "", 0, "", false
	}
	if rest == "heads" {
		return tasklist, partition, "", true
	}
	column, ok = strings.CutPrefix(rest, "col:")
	return tasklist, partition, column, ok
}
