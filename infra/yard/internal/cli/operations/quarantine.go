package operations

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/quarantine"
)

// Limits of what is printed of quarantine.
const (
	reasonShown = 80
	dumpShown   = 4 << 10
)

// quarantineKinds are what --kind takes.
var quarantineKinds = map[string]logv1.QuarantineKind{
	"":           logv1.QuarantineKind_QUARANTINE_KIND_UNSPECIFIED,
	"unreadable": logv1.QuarantineKind_QUARANTINE_KIND_UNREADABLE,
	"unwritable": logv1.QuarantineKind_QUARANTINE_KIND_UNWRITABLE,
}

// QuarantineCommand is `yard quarantine`.
func QuarantineCommand(a *command.App) *cobra.Command {
	return command.Group("quarantine", "Look after what could not be read or written",
		quarantineList(a), quarantineGet(a), quarantineRedrive(a), quarantineDelete(a))
}

func quarantineList(a *command.App) *cobra.Command {
	f, kind := quarantine.Filter{Partition: -1}, ""
	cmd := &cobra.Command{
		Use: "list", Short: "List the items in quarantine, the oldest first",
		Example: "  yard quarantine list --service timer --partition 3",
		Args:    command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var known bool
			if f.Kind, known = quarantineKinds[kind]; !known {
				return command.Usagef("kind %q: want unreadable or unwritable", kind)
			}
			if f.Service != "" && ids.CheckName(f.Service) != nil {
				return command.Usagef("%q is no service's name", f.Service)
			}
			return a.WithJetStream(cmd.Context(), func(ctx context.Context, js jetstream.JetStream) error {
				var all []quarantine.Item
				err := quarantine.List(ctx, js, f, func(i quarantine.Item) error {
					all = append(all, i)
					return nil
				})
				if err != nil {
					return err
				}
				return printItems(a, all, false)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.Service, "service", "", "only items of this service")
	flags.IntVar(&f.Partition, "partition", -1, "only of this partition")
	flags.StringVar(&kind, "kind", "", "only unreadable or unwritable ones")
	return cmd
}

func quarantineGet(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use: "get ITEM", Short: "Show an item: where it comes from, why it is here, what it holds",
		Example: "  yard quarantine get 12",
		Args:    command.ArgCount(1, 1, "the number of one item"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withItems(cmd.Context(), a, args, func(ctx context.Context, js jetstream.JetStream, seq uint64) error {
				item, err := quarantine.Get(ctx, js, seq)
				if err != nil {
					return err
				}
				return printItem(a, item)
			})
		},
	}
}

func quarantineRedrive(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use: "redrive ITEM…", Short: "Publish items again, and remove each once it is stored",
		Long: `Publish items again: a failed write to its target, an unreadable record to the end of
the stream it was read from, for a newer program. An item leaves quarantine only after
it is stored there.`,
		Example: "  yard quarantine redrive 12 13",
		Args:    command.ArgCount(1, -1, "the numbers of items"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withItems(cmd.Context(), a, args, func(ctx context.Context, js jetstream.JetStream, seq uint64) error {
				stored, err := quarantine.Redrive(ctx, js, seq)
				if natslog.Permanent(err) {
					return fault.New(fault.FailedPrecondition, "it still cannot be stored, and stays in quarantine: %v", err)
				}
				if err != nil {
					return err
				}
				return printDone(a, "redriven", seq, stored)
			})
		},
	}
}

func quarantineDelete(a *command.App) *cobra.Command {
	yes := false
	cmd := &cobra.Command{
		Use: "delete ITEM…", Short: "Delete items forever, or list them first",
		Example: "  yard quarantine delete 12\n  yard quarantine delete 12 --yes",
		Args:    command.ArgCount(1, -1, "the numbers of items"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var items []quarantine.Item
			err := withItems(cmd.Context(), a, args, func(ctx context.Context, js jetstream.JetStream, seq uint64) error {
				if !yes {
					item, err := quarantine.Get(ctx, js, seq)
					if err != nil {
						return err
					}
					items = append(items, item)
					return nil
				}
				if err := quarantine.Drop(ctx, js, seq); err != nil {
					return err
				}
				return printDone(a, "deleted", seq, 0)
			})
			if err != nil || yes {
				return err
			}
			return printItems(a, items, true)
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, command.YesUsage)
	return cmd
}

// withItems runs do for each item that is named, up to the first error.
func withItems(ctx context.Context, a *command.App, args []string, do func(ctx context.Context, js jetstream.JetStream, seq uint64) error) error {
	var all []uint64
	for _, arg := range args {
		seq, err := strconv.ParseUint(arg, 10, 64)
		if err != nil || seq == 0 {
			return command.Usagef("%q is no item: want the number that `yard quarantine list` shows", arg)
		}
		all = append(all, seq)
	}
	return a.WithJetStream(ctx, func(ctx context.Context, js jetstream.JetStream) error {
		for _, seq := range all {
			err := do(ctx, js, seq)
			if errors.Is(err, quarantine.ErrNotFound) {
				return fault.New(fault.NotFound, "%v", err)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// itemJSON is an item for programs; list leaves the data out.
type itemJSON struct {
	Item      uint64 `json:"item"`
	Kind      string `json:"kind"`
	Service   string `json:"service"`
	Partition int32  `json:"partition"`
	Reason    string `json:"reason"`
	Stream    string `json:"origin_stream,omitempty"`
	Subject   string `json:"origin_subject,omitempty"`
	Seq       uint64 `json:"origin_seq,omitempty"`
	AtMS      int64  `json:"at_ms"`
	Target    string `json:"target_subject"`
	Data      string `json:"data,omitempty"`
}

func newItemJSON(i quarantine.Item) itemJSON {
	return itemJSON{
		i.Seq, kindName(i.Kind), i.Service, i.Partition, i.Reason, i.OriginStream, i.OriginSubject, i.OriginSeq,
		i.AtMs, i.Target(), "",
	}
}

func kindName(k logv1.QuarantineKind) string {
	return strings.ToLower(strings.TrimPrefix(k.String(), "QUARANTINE_KIND_"))
}

func printItems(a *command.App, all []quarantine.Item, preview bool) error {
	return a.Show(map[string]any{"items": command.Each(all, newItemJSON)}, func(t *command.Table) {
		t.Row("ITEM", "TIME", "KIND", "SERVICE", "PARTITION", "TARGET", "REASON", command.Wide{"ORIGIN", "SEQUENCE", "BYTES"})
		for _, i := range all {
			reason := command.OneLine(i.Reason)
			if len(reason) > reasonShown && !a.Wide {
				reason = strings.ToValidUTF8(reason[:reasonShown], "") + "…"
			}
			t.Row(i.Seq, command.At(i.AtMs), kindName(i.Kind), i.Service, i.Partition, i.Target(), reason, command.Wide{command.OrDash(i.OriginStream), i.OriginSeq, len(i.Data)})
		}
		t.Preview(preview)
	})
}

func printItem(a *command.App, i quarantine.Item) error {
	message := newItemJSON(i)
	message.Data = base64.StdEncoding.EncodeToString(i.Data)
	return a.Show(message, func(about *command.Table) {
		about.Row("item", i.Seq)
		about.Row("kind", kindName(i.Kind))
		about.Row("set apart", command.At(i.AtMs), "by", i.Service, "of partition", i.Partition)
		about.Row("reason", command.OneLine(i.Reason))
		if i.OriginStream != "" {
			about.Row("read at", fmt.Sprintf("%s, sequence %d, subject %s", i.OriginStream, i.OriginSeq, i.OriginSubject))
		}
		about.Row("redrive to", i.Target())
		about.Row("data", len(i.Data), "bytes")
		about.Row()
		for line := range strings.Lines(contents(i.Data)) {
			about.Row(strings.TrimSuffix(line, "\n"))
		}
	})
}

// contents are the tasks of a batch, as far as the data decode as one, else a dump.
func contents(data []byte) string {
	var b logv1.Batch
	if len(data) == 0 || b.UnmarshalVT(data) != nil || len(b.Tasks)+len(b.Early) == 0 {
		dump := hex.Dump(data[:min(len(data), dumpShown)])
		if len(data) > dumpShown {
			dump += "…\n"
		}
		return dump
	}
	var text strings.Builder
	fmt.Fprintf(&text, "a batch of log version %d: %d tasks, %d that fire early\n", max(b.LogVersion, 1), len(b.Tasks), len(b.Early))
	for _, t := range b.Tasks {
		id := hex.EncodeToString(t.Id)
		if parsed, err := ids.TaskIDFromBytes(t.Id); err == nil {
			id = parsed.String()
		}
		fmt.Fprintln(&text, command.PlainLine(fmt.Sprintf("  task %s  type %s  tasklist %s  domain %s  due %s", command.OrDash(id), command.OrDash(t.Type), command.OrDash(t.Tasklist), command.OrDash(t.Domain), command.At(t.DueAtMs))))
	}
	return text.String()
}

func printDone(a *command.App, what string, seq, stored uint64) error {
	return a.Show(map[string]any{"item": seq, "done": what, "stored_seq": stored}, func(t *command.Table) { t.Row(fmt.Sprintf("item %d was %s", seq, what)) })
}
