package natshistory

import (
	"context"
	"errors"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
)

// DropDead implements partition.Archive. Many letters go in one atomic batch, with a mark in place of each; where one of them is not the last of its subject, or the
// stream takes no marks, each is purged for itself. Both name the subject, so that no sequence, wherever it comes from, deletes another task's letter.
func (a *Archive) DropDead(ctx context.Context, letters []replica.Letter) error {
	ctx, cancel := context.WithTimeout(ctx, appendTimeout)
	defer cancel()
	for some := range slices.Chunk(letters, natslog.MarksMax) {
		err := a.mark(ctx, some)
		if err != nil && !errors.Is(err, natslog.ErrOutcomeUnknown) {
			err = dropLetters(ctx, a.cfg.JetStream, some)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

var errNoMarks = errors.New("they are few, or members of the cluster do not know marks")

// mark stores marks in place of letters, of all of them or of none.
func (a *Archive) mark(ctx context.Context, letters []replica.Letter) error {
	if len(letters) < natslog.MarksMin || a.cfg.LogVersion == nil || a.cfg.LogVersion() < logversion.LetterMarks {
		return errNoMarks
	}
	var all []natslog.Place
	var said []string
	for _, l := range letters {
		all = append(all, natslog.Place{Subject: topology.Dead(l.Domain, l.Tasklist, l.ID), Seq: l.Seq})
		if marked := topology.DeadMarked(l.Domain); !slices.Contains(said, marked) {
			said = append(said, marked)
		}
	}
	return a.marks.Put(ctx, a.cfg.NATS, all, said...)
}
