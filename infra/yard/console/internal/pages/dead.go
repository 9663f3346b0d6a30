package pages

import (
	"cmp"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// countedMax is how many dead letters one page counts; the next page goes on.
const countedMax = 1000

type deadBody struct {
	listed[*yardv1.DeadLetterCount]
	// Counted is how many this page counted, Further: it does not begin at the first one.
	Counted int64
	Further bool
}

func showDeadCounts(r *Request) (any, error) {
	c, err := r.Client()
	if err != nil {
		return nil, err
	}
	cursor := r.FormValue("cursor")
	page, err := c.Wire().CountDeadLetters(r.Context(), &yardv1.CountDeadLettersRequest{Limit: countedMax, Cursor: cursor})
	if err != nil {
		return nil, err
	}
	body := deadBody{listed: listed[*yardv1.DeadLetterCount]{page.Counts, r.next(page.NextCursor)}, Further: cursor != ""}
	slices.SortStableFunc(body.Items, func(a, b *yardv1.DeadLetterCount) int { return cmp.Compare(b.Letters, a.Letters) })
	for _, n := range body.Items {
		body.Counted += n.Letters
	}
	return body, nil
}

type deadListBody struct {
	listed[*yardv1.Task]
	Type, ErrorType, Tasklist string
}

func showDeadList(r *Request) (any, error) {
	c, err := r.Client()
	if err != nil {
		return nil, err
	}
	body := deadListBody{Type: r.FormValue("type"), ErrorType: r.FormValue("error_type"), Tasklist: r.FormValue("tasklist")}
	page, err := c.Wire().ListDeadLetters(r.Context(), &yardv1.ListDeadLettersRequest{
		Filter: &yardv1.DeadLetterFilter{Type: body.Type, ErrorType: body.ErrorType, Tasklist: body.Tasklist}, Limit: listMax, Cursor: r.FormValue("cursor"),
	})
	if err != nil {
		return nil, err
	}
	body.Items, body.Next = page.Tasks, r.next(page.NextCursor)
	return body, nil
}
