package natshistory

import (
	"errors"
	"fmt"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// A scan reads what domains share, and what is filed under those that are asked for: of one lane, up to its end.
func TestAScanReadsWhatItIsAskedFor(t *testing.T) {
	owner, _ := serverPorts(t)
	log, last := NewLog(owner), uint64(0)
	for _, subject := range []string{
		topology.SubmitShared(0, 3), topology.Submit(0, 3, "shop", "mail"), topology.SubmitOf(0, 3, "shop"), topology.Submit(0, 3, "bank", "mail"),
		topology.Submit(0, 3, "shared", "mail"), topology.Submit(0, 2, "shop", "mail"), topology.SubmitShared(0, 3), topology.Event(0),
	} {
		seq, _, err := natslog.Append(t.Context(), owner.NATS, natslog.Msg{Subject: subject, Data: []byte("x")})
		testkit.NoError(t, err)
		last = seq
	}
	many := make([]string, scanFilters+1)
	for i := range many {
		many[i] = fmt.Sprint("d", i)
	}
	broken := errors.New("broken")
	for _, c := range []struct {
		lane    ids.Lane
		domains []string
		from    uint64
		stop    uint64
		want    string
	}{
		{3, []string{"shop"}, 1, 0, "[1 2 3 7]"},
		{3, []string{"shop"}, 3, 0, "[3 7]"},
		{3, []string{"shop"}, 2, 3, "[2 3]"},
		{3, []string{"shared", "bank"}, 1, 0, "[1 4 5 7]"},
		{3, many, 1, 0, "[1 2 3 4 5 7]"},
		{2, []string{"shop"}, 1, 0, "[6]"},
		{1, []string{"shop"}, 1, 0, "[]"},
		{3, []string{"shop"}, last, 0, "[]"},
		{3, []string{"shop"}, last + 1, 0, "[]"},
	} {
		got := []uint64{}
		upTo, err := log.Scan(t.Context(), c.lane, c.domains, c.from, func(r partition.Record) error {
			if got = append(got, r.Seq); r.Seq == c.stop {
				return broken
			}
			return nil
		})
		if fmt.Sprint(got) != c.want || upTo != last || errors.Is(err, broken) != (c.stop > 0) || c.stop == 0 && err != nil {
			t.Errorf("%v: %v up to %d, %v", c, got, upTo, err)
		}
	}
}
