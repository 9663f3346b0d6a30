package firing

import (
	"context"

	"github.com/yardmaster-io/yardmaster/services/timer/internal/batch"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/due"
	"github.com/yardmaster-io/yardmaster/shared/parallel"
)

// FireEarly has waiting tasks fire now. It may be repeated, also if its outcome is unknown. A superseded owner may
// answer too: it has read the store to its end, and the present owner reads what it stores.
func (o *Owner) FireEarly(ctx context.Context, all []due.Wanted) (due.Answer, error) {
	if err := o.catchUp(ctx); err != nil {
		return due.Answer{}, err
	}
	var messages []due.EarlyMessage
	var answer due.Answer
	if err := o.ask(ctx, func() { messages, answer = o.table.FireEarly(all, o.Now().UnixMilli()) }); err != nil {
		return due.Answer{}, err
	}
	ctx, stop := context.WithTimeout(ctx, appendTimeout)
	defer stop()
	err := parallel.Each(ctx, len(messages), earlyParallel, func(ctx context.Context, i int) error {
		return o.Pruner.Early(ctx, messages[i].Bucket, batch.Early(messages[i].All, o.LogVersion()))
	})
	if err != nil {
		return due.Answer{}, err
	}
	return answer, nil
}
