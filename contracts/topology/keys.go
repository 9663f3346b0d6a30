package topology

// Redis keys. Each carries the hash tag {domain}, so that all keys of one
// script call live on one node of a Redis Cluster. Redis holds nothing that
// cannot be rebuilt from history.

func tasklistKey(domain, tasklist string, tp int) string {
	return "yard:{" + domain + "}:tl:" + tasklist + ":" + num(tp)
}

// HeadsKey is the zset of a tasklist partition's columns of one priority,
// scored by their oldest trigger.
func HeadsKey(domain, tasklist string, tp, priority int) string {
	return tasklistKey(domain, tasklist, tp) + ":heads:" + num(priority)
}

// ColumnKey is the zset of one column's chunks of packed triggers.
func ColumnKey(domain, tasklist string, tp, priority int, column string) string {
	return tasklistKey(domain, tasklist, tp) + ":col:" + num(priority) + ":" + column
}

// TasklistsKey is the set of a shard's known tasklist partitions of a domain:
// what a new owner loads.
func TasklistsKey(domain string, shard int) string {
	return "yard:{" + domain + "}:tasklists:" + num(shard)
}

// SlotsKey is the zset of a limit's bookings, scored by when each expires.
func SlotsKey(domain, limit string) string { return "yard:{" + domain + "}:slots:" + limit }

// EpochKey marks that a shard's tables and bookings of a domain are whole. It
// is missing in a Redis that has lost its memory.
func EpochKey(domain string, shard int) string { return "yard:{" + domain + "}:epoch:" + num(shard) }
