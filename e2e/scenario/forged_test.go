package scenario_test

import (
	"encoding/base64"
	"encoding/binary"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// madeUpRetryToken names the first task of a request with the given id: what a repeat with it
// submits would get this id, whoever's it is. The seal is missing or made up.
func madeUpRetryToken(id ids.TaskID, version byte, seal int) string {
	b := binary.BigEndian.AppendUint16([]byte{version}, uint16(id.Partition()))
	b = binary.BigEndian.AppendUint64(b, uint64(id.Time().UnixMilli()))
	b = binary.BigEndian.AppendUint64(b, seedOf(binary.BigEndian.Uint64(id[8:])))
	b = binary.BigEndian.AppendUint16(b, 1)
	b = append(b, "made-up message!"...)
	return base64.RawURLEncoding.EncodeToString(append(b, make([]byte, seal)...))
}

// seedOf is the seed whose first number of the SplitMix64 sequence is n.
func seedOf(n uint64) uint64 {
	unshift := func(n uint64, by uint) uint64 { return n ^ n>>by ^ n>>(2*by) }
	inverse := func(of uint64) uint64 {
		x := of
		for range 6 { // each round doubles the bits that are right
			x *= 2 - of*x
		}
		return x
	}
	n = unshift(n, 31) * inverse(0x94d049bb133111eb)
	n = unshift(n, 27) * inverse(0xbf58476d1ce4e5b9)
	return unshift(n, 30)
}

// TestI14_NoTaskUnderTheIDOfAnotherDomains: who knows the id of another domain's task makes
// up a retry token for it. Were a task of his stored under that id, the end of his would void
// the other's, which waits in the timer store: it would never run.
func TestI14_NoTaskUnderTheIDOfAnotherDomains(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		thief := enter(t, w.stack)
		id := w.submitOne(&yardv1.NewTask{Type: "x", DelayMs: 1500})
		for version, seal := range map[byte]int{1: 0, 2: ids.SealBytes} {
			_, err := call[yardv1.SubmitResponse](thief, "tasks.submit", &yardv1.SubmitRequest{
				Tasklist: list, Tasks: []*yardv1.NewTask{{Type: "x"}}, RetryToken: madeUpRetryToken(taskID(t, id), version, seal),
			})
			refused(t, err, fault.InvalidArgument)
		}
		equal(t, "what ran", w.takeOne().TaskId, id)
	})
}
