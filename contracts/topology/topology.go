// Package topology is the one place where a subject, stream, bucket or Redis
// key is spelled.
//
// Owns: names, and what each stream and bucket is configured like. Never does:
// talk to a server; package provision makes a server match what stands here.
// A literal subject elsewhere is a defect: grep for the function to find who
// publishes and who handles.
package topology

// Partitioning is fixed when a cluster is created and kept in the config
// bucket; a service started with other values refuses to start.
type Partitioning struct {
	// History is P, the number of history and timer partitions, 1..1024. Default 4.
	History int `json:"history_partitions"`
	// Matching is M, the number of matching shards, 1..1024. Default 4.
	Matching int `json:"matching_shards"`
}

// DefaultPartitioning is what a cluster is created with where nothing else is said.
func DefaultPartitioning() Partitioning { return Partitioning{History: 4, Matching: 4} }

// PartitionsMax bounds both numbers of Partitioning.
const PartitionsMax = 1024
