package operations

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
)

// ClusterCommand is `yard cluster`.
func ClusterCommand(a *command.App) *cobra.Command {
	return command.Group("cluster", "Look into the services of a cluster", clusterQueues(a))
}

func clusterQueues(a *command.App) *cobra.Command {
	req, partition := &yardv1.ListQueuesRequest{}, int32(-1)
	cmd := &cobra.Command{
		Use: "queues", Short: "Show how full the queues of each history partition are, and what waits on disk behind them",
		Long: `Show what each history partition has in memory, by lane: p1 to p5 by the priority of the tasks, later
for delayed ones, keyed for those with an order key. A domain that fills a lane is split off, or a
tasklist that holds up others of its domain: it has a line of its own, and the lane goes on without
it. Each is read while its tasks and their bytes are below the most; the bar shows the fuller of the two. UNREAD counts messages of up to
1000 tasks, on disk only.

The lanes that are empty and read to their end are left out; --output wide and json have them.`,
		Example: `  yard cluster queues
  yard cluster queues --partition 3 --domain shop
  yard cluster queues -o json`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed(command.DomainFlag) {
				req.Domain = a.Domain
			}
			if partition >= 0 {
				req.Partition, req.Partitions = partition, 1
			}
			return a.WithClient(cmd.Context(), func(ctx context.Context, c *yard.Client) error {
				all := &yardv1.ListQueuesResponse{}
				for more := true; more; more = req.Partition > 0 && partition < 0 {
					page, err := c.Admin().ListQueues(ctx, req)
					if err != nil {
						return err
					}
					all.Partitions = append(all.Partitions, page.Partitions...)
					req.Partition = page.NextPartition
				}
				return printQueues(a, all)
			})
		},
	}
	flags := cmd.Flags()
	flags.Int32Var(&partition, "partition", partition, "only this partition")
	flags.Int32VarP(&req.Limit, "limit", "n", 0, "how many queues that are split off, of each partition, up to 100; 0 = the default, 10")
	return cmd
}

func printQueues(a *command.App, all *yardv1.ListQueuesResponse) error {
	return a.Show(all, func(t *command.Table) {
		t.Row("PARTITION", "LANE", "DOMAIN", "TASKLIST", "ROOM", "TASKS", "MOST", "BYTES", "MOST", "UNREAD", "READ TO", "NOTE")
		note := func(p *yardv1.PartitionQueues, text string) {
			t.Row(p.Partition, "-", "-", "-", "-", "-", "-", "-", "-", "-", "-", text)
		}
		for _, p := range all.Partitions {
			rows := len(t.Rows)
			if p.Error != "" {
				note(p, "no answer: "+p.Error)
			}
			switch p.Submits {
			case "less":
				note(p, "its appends are slow: it gets fewer submits")
			case "probes":
				note(p, "its appends are slow: it gets no submits that may go elsewhere, but probes")
			}
			for _, q := range p.Queues {
				if !a.Wide && q.Tasks+q.Unread == 0 && q.Domain == "" {
					continue
				}
				since := ""
				if q.SplitAtMs > 0 {
					since = "split off at least since " + command.At(q.SplitAtMs)
				}
				t.Row(p.Partition, q.Lane, command.OrDash(q.Domain), command.OrDash(q.Tasklist), bar(q), q.Tasks, q.TasksMax, q.Bytes, q.BytesMax, q.Unread, q.Read, since)
			}
			if p.Others > 0 {
				note(p, fmt.Sprintf("and %d more that are split off: see --limit", p.Others))
			}
			if len(t.Rows) == rows {
				note(p, "empty")
			}
		}
	})
}

// barWidth is how many signs a bar has.
const barWidth = 20

// bar draws how full a queue is, of tasks or of bytes: one sign at least if there is a task, and all only if it is full.
func bar(q *yardv1.Queue) string {
	filled := int64(0)
	for _, part := range [][2]int64{{q.Tasks, q.TasksMax}, {q.Bytes, q.BytesMax}} {
		if taken, most := part[0], part[1]; taken >= most {
			filled = barWidth
		} else if taken > 0 {
			filled = max(filled, 1, barWidth*taken/most)
		}
	}
	return "[" + strings.Repeat("#", int(filled)) + strings.Repeat(".", int(barWidth-filled)) + "]"
}
