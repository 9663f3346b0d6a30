package topology

import "strings"

// KV buckets.
const (
	// ConfigBucket holds domains, types, settings of tasklists and cluster constants, as JSON, and the
	// secret of attempt tokens.
	ConfigBucket = "YARD_CONFIG"
	// MembersBucket holds a heartbeat per live node.
	MembersBucket = "YARD_MEMBERS"
	// CheckpointsBucket holds a checkpoint per history partition and an epoch per
	// matching shard, written by compare-and-set.
	CheckpointsBucket = "YARD_CHECKPOINTS"
)

// Buckets lists every KV bucket of a cluster.
func Buckets() []string { return []string{ConfigBucket, MembersBucket, CheckpointsBucket} }

// BucketStream is the stream that a bucket is made of.
func BucketStream(bucket string) string { return "KV_" + bucket }

// BucketSubject is the subject of a key, or of a filter of keys, in the stream of a bucket.
func BucketSubject(bucket, key string) string { return "$KV." + bucket + "." + key }

// Keys of the config bucket.

// ClusterKey holds the Partitioning.
const ClusterKey = "cluster"

// VersionKey holds the log version that the cluster writes, a decimal number.
// Absent = 1: the cluster was created by a program that knew no versions.
const VersionKey = "version"

// TokenSecretKey holds the secret that attempt tokens are checked with, as bytes
// (ids.Tokens). Only services of the engine may read it.
const TokenSecretKey = "secret.tokens"

// DomainKeys, TypeKeys, TasklistKeys, LimitKeys, GroupKeys, PauseKeys, DrainKeys, ScaleKeys and WorkersKeys filter all domains, types, settings of tasklists,
// limits, settings of groups, pauses, drains, scales, and drained workers.
const (
	DomainKeys   = "domain.*"
	TypeKeys     = "type.>"
	TasklistKeys = "tasklist.*.*"
	LimitKeys    = "limit.*.*"
	GroupKeys    = "group.>"
	PauseKeys    = "pause.>"
	DrainKeys    = "drain.>"
	ScaleKeys    = "scale.*.*"
	WorkersKeys  = "workers.*"
)

// DomainKey holds a domain's settings (yardv1.Domain).
func DomainKey(domain string) string { return "domain." + domain }

// TypeKey holds a task type's settings (yardv1.TaskType). A type may hold dots.
func TypeKey(domain, taskType string) string { return "type." + domain + "." + taskType }

// TypeKeysOf filters the types of one domain.
func TypeKeysOf(domain string) string { return "type." + domain + ".>" }

// TasklistSettingsKey holds a tasklist's settings (yardv1.Tasklist).
func TasklistSettingsKey(domain, tasklist string) string {
	return "tasklist." + domain + "." + tasklist
}

// TasklistKeysOf filters the tasklists of one domain.
func TasklistKeysOf(domain string) string { return "tasklist." + domain + ".*" }

// TasklistPauseKey and TypePauseKey hold a pause (yardv1.Pause).
func TasklistPauseKey(domain, tasklist string) string {
	return "pause.tasklist." + domain + "." + tasklist
}

// TypePauseKey holds the pause of a type.
func TypePauseKey(domain, taskType string) string { return "pause.type." + domain + "." + taskType }

// TasklistDrainKey holds the drain of a tasklist (yardv1.Pause).
func TasklistDrainKey(domain, tasklist string) string {
	return "drain.tasklist." + domain + "." + tasklist
}

// TypeDrainKey holds the drain of a type.
func TypeDrainKey(domain, taskType string) string { return "drain.type." + domain + "." + taskType }

// GroupPauseKey holds the pause of a group, GroupDrainKey its drain (yardv1.Pause).
func GroupPauseKey(domain, group string) string { return "pause.group." + domain + "." + group }

// GroupDrainKey holds the drain of a group.
func GroupDrainKey(domain, group string) string { return "drain.group." + domain + "." + group }

// PauseKeysOf filter the pauses and drains of one domain.
func PauseKeysOf(domain string) []string {
	return []string{
		"pause.tasklist." + domain + ".*", "pause.type." + domain + ".>", "pause.group." + domain + ".>",
		"drain.tasklist." + domain + ".*", "drain.type." + domain + ".>", "drain.group." + domain + ".>",
	}
}

// ScaleKey holds over how many partitions the engine itself has spread a tasklist, a decimal number.
func ScaleKey(domain, tasklist string) string { return "scale." + domain + "." + tasklist }

// ScaleKeysOf filters the scales of one domain.
func ScaleKeysOf(domain string) string { return "scale." + domain + ".*" }

// WorkersKey holds which workers of a domain are drained (rpcv1.DrainedWorkers). It is one key for all, since their ids are new for each run, and
// a deleted key leaves a mark behind for good.
func WorkersKey(domain string) string { return "workers." + domain }

// LimitKey holds a limit that types share (yardv1.Limit).
func LimitKey(domain, limit string) string { return "limit." + domain + "." + limit }

// LimitKeysOf filters the limits of one domain.
func LimitKeysOf(domain string) string { return "limit." + domain + ".*" }

// GroupKey holds the settings of a group (yardv1.Group). A group may hold dots.
func GroupKey(domain, group string) string { return "group." + domain + "." + group }

// GroupKeysOf filters the groups of one domain.
func GroupKeysOf(domain string) string { return "group." + domain + ".>" }

// DomainOfKey, TypeOfKey, TasklistOfKey, LimitOfKey and GroupOfKey read the names back; ok is false for other keys.
func DomainOfKey(key string) (domain string, ok bool) {
	const prefix = "domain."
	if len(key) <= len(prefix) || key[:len(prefix)] != prefix {
		return "", false
	}
	return key[len(prefix):], true
}

// TypeOfKey is the inverse of TypeKey.
func TypeOfKey(key string) (domain, taskType string, ok bool) {
	return dottedOf(key, "type.")
}

// dottedOf reads a domain and a name that may hold dots behind a prefix.
func dottedOf(key, prefix string) (domain, name string, ok bool) {
	rest, ok := strings.CutPrefix(key, prefix)
	if !ok {
		return "", "", false
	}
	domain, name, ok = strings.Cut(rest, ".")
	return domain, name, ok && domain != "" && name != ""
}

// TasklistOfKey is the inverse of TasklistSettingsKey.
func TasklistOfKey(key string) (domain, tasklist string, ok bool) { return pairOf(key, "tasklist.") }

// TasklistPauseOfKey and TypePauseOfKey are the inverses of TasklistPauseKey and TypePauseKey.
func TasklistPauseOfKey(key string) (domain, tasklist string, ok bool) {
	return pairOf(key, "pause.tasklist.")
}

// TypePauseOfKey is the inverse of TypePauseKey.
func TypePauseOfKey(key string) (domain, taskType string, ok bool) {
	rest, ok := strings.CutPrefix(key, "pause.")
	if !ok {
		return "", "", false
	}
	return TypeOfKey(rest)
}

// TasklistDrainOfKey and TypeDrainOfKey are the inverses of TasklistDrainKey and TypeDrainKey.
func TasklistDrainOfKey(key string) (domain, tasklist string, ok bool) {
	return pairOf(key, "drain.tasklist.")
}

// TypeDrainOfKey is the inverse of TypeDrainKey.
func TypeDrainOfKey(key string) (domain, taskType string, ok bool) {
	rest, ok := strings.CutPrefix(key, "drain.")
	if !ok {
		return "", "", false
	}
	return TypeOfKey(rest)
}

// GroupPauseOfKey and GroupDrainOfKey are the inverses of GroupPauseKey and GroupDrainKey.
func GroupPauseOfKey(key string) (domain, group string, ok bool) {
	return dottedOf(key, "pause.group.")
}

// GroupDrainOfKey is the inverse of GroupDrainKey.
func GroupDrainOfKey(key string) (domain, group string, ok bool) {
	return dottedOf(key, "drain.group.")
}

// LimitOfKey is the inverse of LimitKey.
func LimitOfKey(key string) (domain, limit string, ok bool) { return pairOf(key, "limit.") }

// ScaleOfKey is the inverse of ScaleKey.
func ScaleOfKey(key string) (domain, tasklist string, ok bool) { return pairOf(key, "scale.") }

// WorkersOfKey is the inverse of WorkersKey.
func WorkersOfKey(key string) (domain string, ok bool) {
	domain, ok = strings.CutPrefix(key, "workers.")
	return domain, ok && domain != "" && !strings.Contains(domain, ".")
}

// GroupOfKey is the inverse of GroupKey.
func GroupOfKey(key string) (domain, group string, ok bool) { return dottedOf(key, "group.") }

// pairOf reads the two names behind a prefix.
func pairOf(key, prefix string) (domain, name string, ok bool) {
	rest, ok := strings.CutPrefix(key, prefix)
	if !ok {
		return "", "", false
	}
	domain, name, ok = strings.Cut(rest, ".")
	return domain, name, ok && domain != "" && name != "" && !strings.Contains(name, ".")
}

// MemberKey is a node's heartbeat in the members bucket.
func MemberKey(service, node string) string { return service + "." + node }

// MemberOfKey is the inverse of MemberKey; ok is false for other keys.
func MemberOfKey(key string) (service, node string, ok bool) {
	service, node, ok = strings.Cut(key, ".")
	return service, node, ok && service != "" && node != ""
}

// MemberKeys filters the heartbeats of one service.
func MemberKeys(service string) string { return service + ".*" }

// HistoryCheckpoints and MatchingEpochs filter all of them.
const (
	HistoryCheckpoints = "history.*"
	MatchingEpochs     = "matching.*"
)

// HistoryCheckpoint is the key of a history partition's checkpoint.
func HistoryCheckpoint(p int) string { return "history." + num(p) }

// MatchingEpoch is the key of a matching shard's epoch in the checkpoints bucket.
func MatchingEpoch(m int) string { return "matching." + num(m) }
