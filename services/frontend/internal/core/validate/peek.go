package validate

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// Place is where a ready task stands in the line of its tasklist.
type Place struct {
	Priority  int32
	ReadyAtMs int64
	ID        ids.TaskID
}

// String is the place as a cursor.
func (p Place) String() string { return fmt.Sprintf("%d.%d.%s", p.Priority, p.ReadyAtMs, p.ID) }

// Compare is negative where p comes before o.
func (p Place) Compare(o Place) int {
	return cmp.Or(cmp.Compare(p.Priority, o.Priority), cmp.Compare(p.ReadyAtMs, o.ReadyAtMs), cmp.Compare(p.ID.String(), o.ID.String()))
}

// Peek checks a tasklists.peek and fills in its default limit; after is the place behind which it begins.
func Peek(req *yardv1.PeekTasklistRequest) (after Place, err error) {
	req.Limit = cmp.Or(req.Limit, PeekDefault)
	if err := firstError(name("/name", req.Name), ifNamed(typeName, "/type", req.Type), ifNamed(typeName, "/group", req.Group), between("/limit", req.Limit, 1, PeekMax)); err != nil {
		return after, err
	}
	if req.Cursor == "" {
		return after, nil
	}
	const parts = 3
	c := strings.Split(req.Cursor, ".")
	if len(c) == parts {
		priority, noPriority := strconv.ParseInt(c[0], 10, 32)
		at, noTime := strconv.ParseInt(c[1], 10, 64)
		id, noID := ids.ParseTaskID(c[2])
		if noPriority == nil && noTime == nil && noID == nil {
			return Place{int32(priority), at, id}, nil
		}
	}
	return after, notNext()
}
