package topology

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// Batches of tasks. A subject has a digest of the batch's id, since any text may be one; its domain comes first, so that the batches of one can be
// listed.

const (
	batchHomePart   = ".batch.home."
	batchClosedPart = ".batch.closed."
)

// BatchHome is where the log of partition p, the home of a batch, has the batch itself: only the last message counts.
func BatchHome(p int, domain, batch string) string {
	return "yard.history." + num(p) + batchHomePart + domain + "." + batchToken(domain, batch)
}

// BatchHomesOf filters the batches of a domain whose home is partition p.
func BatchHomesOf(p int, domain string) string {
	return "yard.history." + num(p) + batchHomePart + domain + ".*"
}

// BatchHomeAny filters all batches whose home is partition p.
func BatchHomeAny(p int) string { return "yard.history." + num(p) + batchHomePart + ">" }

// DomainOfBatchHome is the domain of a subject of BatchHome, or "".
func DomainOfBatchHome(p int, subject string) string {
	return firstBehind(subject, "yard.history."+num(p)+batchHomePart)
}

// BatchClosed is where the log of partition p says that a batch which was created at a time, Unix ms, takes no more tasks there.
func BatchClosed(p int, domain, batch string, madeMS int64) string {
	return "yard.history." + num(p) + batchClosedPart + BatchOf(domain, batch, madeMS)
}

// SubmitBatch is where the tasks of a batch are filed in a lane of partition p.
func SubmitBatch(p int, lane ids.Lane, domain, batch string) string {
	return Submit(p, lane, domain, BatchTasklist(domain, batch))
}

// BatchTasklist takes the place of a tasklist in the subjects of the tasks of a batch.
func BatchTasklist(domain, batch string) string { return "+" + batchToken(domain, batch) }

// BatchAny filters what the log of partition p says about batches.
func BatchAny(p int) string { return "yard.history." + num(p) + ".batch.>" }

// BatchOf names a batch among all that have or had its name, as the subjects of its records end.
func BatchOf(domain, batch string, madeMS int64) string {
	return domain + "." + batchToken(domain, batch) + "." + strconv.FormatInt(madeMS, 10)
}

// BatchPartition is the home of a batch.
func BatchPartition(domain, batch string, n Partitioning) int {
	digest := batchDigest(domain, batch)
	return int(binary.BigEndian.Uint64(digest[batchTokenBytes:]) % uint64(n.History))
}

// HintBatch carries logv1.BatchHint to the keeper of the batches whose home is partition p. Core NATS, lost without harm.
func HintBatch(p int) string { return "yard.hint.batch." + num(p) }

// HintBatchAny filters those of all partitions.
const HintBatchAny = "yard.hint.batch.*"

// batchTokenBytes is how much of a digest names a batch. The next bytes choose its home.
const batchTokenBytes = 16

func batchToken(domain, batch string) string {
	digest := batchDigest(domain, batch)
	return hex.EncodeToString(digest[:batchTokenBytes])
}

func batchDigest(domain, batch string) [sha256.Size]byte {
	return sha256.Sum256([]byte("batch\x00" + domain + "\x00" + batch))
}

// How long what is stored of a batch is kept at the most; a batch expires before.
const (
	BatchExpiresMax = 30 * 24 * time.Hour
	BatchLifeMax    = BatchExpiresMax + 2*24*time.Hour
	// BatchClosedKept is for how long the closed records of a batch outlive it: longer than a try to store one of its tasks may still come.
	BatchClosedKept = 15 * time.Minute
)

// BatchesMax bounds the batches of a domain whose home is one partition, with those that are over and still kept.
const BatchesMax = 5000
