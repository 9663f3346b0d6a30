// Package caller has a context carry the name of who makes a call.
//
// Owns: the key in the context. Never does: check a name, or send it; package yard does.
//
// On failure: a context without a name has an empty one.
package caller

import "context"

type key struct{}

// With returns a context whose calls are made by somebody.
func With(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, key{}, name)
}

// Of is the name in a context, or "".
func Of(ctx context.Context) string {
	name, _ := ctx.Value(key{}).(string)
	return name
}
