package topology

import "strings"

// KV buckets.
const (
	// ConfigBucket holds the records of package catalog and cluster constants, as JSON, and the
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
