package yard

import (
	"context"
	"iter"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

// pages yields the items of all pages, one page after the other. An error is the last that it
// yields.
func pages[T any](fetch func(cursor string) (page []T, next string, err error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for cursor, more := "", true; more; more = cursor != "" {
			page, next, err := fetch(cursor)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, item := range page {
				if !yield(item, nil) {
					return
				}
			}
			cursor = next
		}
	}
}

// collect returns all items, or the error.
func collect[T any](items iter.Seq2[T, error]) (all []T, err error) {
	for item, err := range items {
		if err != nil {
			return nil, err
		}
		all = append(all, item)
	}
	return all, nil
}

// Tasks yields all tasks that match the filter as List finds them, newest first, and asks for
// them page by page. Each page is bounded as a request without a deadline is, if ctx has
// none. If one cannot be had, the error is the last that is yielded.
func (c *Client) Tasks(ctx context.Context, filter Filter) iter.Seq2[*TaskInfo, error] {
	return pages(func(cursor string) ([]*TaskInfo, string, error) {
		req := filter.wire()
		req.Cursor = cursor
		resp, err := c.Wire().List(ctx, req)
		return each(resp.GetTasks(), infoOf), resp.GetNextCursor(), err
	})
}

// Types yields all task types of the domain that have settings, by name, and asks for them page
// by page as Tasks does.
func (c *Client) Types(ctx context.Context) iter.Seq2[TaskType, error] {
	return pages(func(cursor string) ([]TaskType, string, error) {
		resp, err := call[yardv1.ListTypesResponse](ctx, &c.transport, c.subject("types.list"), &yardv1.ListTypesRequest{Cursor: cursor})
		return each(resp.GetTypes(), taskTypeOf), resp.GetNextCursor(), err
	})
}

// Domains yields all domains, by name, and asks for them page by page as Client.Tasks does.
func (a *Admin) Domains(ctx context.Context) iter.Seq2[Domain, error] {
	return pages(func(cursor string) ([]Domain, string, error) {
		resp, err := call[yardv1.ListDomainsResponse](ctx, &a.transport, topology.Admin("domains.list"), &yardv1.ListDomainsRequest{Cursor: cursor})
		return each(resp.GetDomains(), domainOf), resp.GetNextCursor(), err
	})
}

// each converts a page.
func each[W, T any](page []W, of func(W) T) []T {
	all := make([]T, len(page))
	for i, w := range page {
		all[i] = of(w)
	}
	return all
}
