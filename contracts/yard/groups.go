package yard

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// Group is what is set of a group of tasks (Task.Group). A group needs no settings: its weight is 1.
type Group struct {
	// Name is [A-Za-z0-9_.-]{1,64}, without "." at an end or twice in a row; required.
	Name string
	// Description is for people; at most 1024 bytes.
	Description string
	// Weight is its share while other groups wait beside it: one of weight 2 gets twice what one of weight 1 gets. 0.01..100.
	// Default 1, but of one that is idle 0.
	Weight float64
	// Idle: its tasks start when nothing else of their tasklist is ready, of any priority. Its Weight says nothing.
	Idle bool
	// MaxConcurrency is how many of its attempts may run at once in each limit that counts per group (MaxConcurrencyPerGroup), in place
	// of the number there; 1..1000000. Default 0 = as the limit says.
	MaxConcurrency int
	// Revision changes with every put. PutGroup replaces only this revision, or any if it is 0.
	Revision int64
	// Pause is its pause, Drain its drain, as GetGroup and Groups return them; nil: it has none. A put changes neither.
	Pause, Drain *Pause
}

// PutGroup sets the weight of a group, and how many of its attempts may run at once, and returns its settings as stored. They count
// within a second; the weight for tasks that become ready from then on. STALE: another revision than g's is stored. FAILED_PRECONDITION: 10000 groups of the domain have
// settings.
func (c *Client) PutGroup(ctx context.Context, g Group) (Group, error) {
	resp, err := call[yardv1.PutGroupResponse](ctx, &c.transport, c.subject("groups.put"), &yardv1.PutGroupRequest{Group: g.Wire()})
	return groupOf(resp.GetGroup()), err
}

// GetGroup returns the settings of a group, its pause and its drain, or NOT_FOUND if there is none of these.
func (c *Client) GetGroup(ctx context.Context, name string) (Group, error) {
	resp, err := call[yardv1.GetGroupResponse](ctx, &c.transport, c.subject("groups.get"), &yardv1.GetGroupRequest{Name: name})
	g := groupOf(resp.GetGroup())
	g.Pause, g.Drain = maybePaused(resp.GetPause()), maybePaused(resp.GetDrain())
	return g, err
}

// Groups yields all groups of the domain that have settings, are paused or drained, by name, and asks for them page by page as Tasks does.
func (c *Client) Groups(ctx context.Context) iter.Seq2[Group, error] {
	return pages(func(cursor string) ([]Group, string, error) {
		resp, err := call[yardv1.ListGroupsResponse](ctx, &c.transport, c.subject("groups.list"), &yardv1.ListGroupsRequest{Cursor: cursor})
		groups := each(resp.GetGroups(), groupOf)
		for _, s := range resp.GetStopped() { // sorted as they are
			if at, ok := slices.BinarySearchFunc(groups, s.Name, func(g Group, name string) int { return strings.Compare(g.Name, name) }); ok {
				groups[at].Pause, groups[at].Drain = maybePaused(s.Pause), maybePaused(s.Drain)
			}
		}
		return groups, resp.GetNextCursor(), err
	})
}

// DeleteGroup deletes the settings of a group, and returns them as they were: only the given revision (STALE if another one is
// stored), or any if that is 0. NOT_FOUND: there are none, or an earlier try deleted them and its answer was lost.
func (c *Client) DeleteGroup(ctx context.Context, name string, revision int64) (Group, error) {
	resp, err := call[yardv1.DeleteGroupResponse](ctx, &c.transport, c.subject("groups.delete"), &yardv1.DeleteGroupRequest{Name: name, Revision: revision})
	return groupOf(resp.GetGroup()), err
}

// Wire is the settings as the API writes them.
func (g Group) Wire() *yardv1.Group {
	w := &yardv1.Group{Name: g.Name, Description: g.Description, MaxConcurrency: int32Of(g.MaxConcurrency), Revision: g.Revision}
	switch {
	case g.Idle:
		w.Weight = new(0.0)
	case g.Weight != 0:
		w.Weight = &g.Weight
	}
	return w
}

func groupOf(w *yardv1.Group) Group {
	if w == nil {
		return Group{}
	}
	g := Group{Name: w.Name, Description: w.Description, Weight: 1, MaxConcurrency: int(w.MaxConcurrency), Revision: w.Revision}
	if w.Weight != nil {
		g.Weight, g.Idle = *w.Weight, *w.Weight == 0
	}
	return g
}
