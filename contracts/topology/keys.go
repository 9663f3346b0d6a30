package topology

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

// EpochKey names the present life of a shard's tables of a domain, and the run of the
// server that it began in. It is missing in a Redis that has lost its memory.
func EpochKey(domain string, shard int) string { return "yard:{" + domain + "}:epoch:" + num(shard) }
