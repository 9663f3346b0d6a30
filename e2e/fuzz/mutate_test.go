package fuzz_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// dice makes the mutations.
type dice struct{ *rand.Rand }

func (d dice) one(n int) bool { return d.IntN(n) == 0 }

func pick[T any](d dice, of ...T) T { return of[d.IntN(len(of))] }

// number is one that a program may get wrong.
func (d dice) number() int64 {
	return pick(d, 0, 1, -1, 2, 100, 255, 256, 999, 1000, 1001, 59_999, 60_001, math.MaxInt32, math.MinInt32, math.MaxInt32+1,
		1<<53, 1<<53+1, math.MaxInt64, math.MinInt64, 1_795_000_000_000, 31_622_400_001, d.Int64())
}

// text is likewise; few are long.
func (d dice) text() string {
	if d.one(200) {
		return strings.Repeat(pick(d, "a", "é", "\x00", `"`), 1<<d.IntN(19))
	}
	return pick(d, "", " ", "*", ">", "a.b", "mail", "email.send", "shop", "admin", "\x00", "\xff\xfe", "a\r\nb", "null", "-1", "1e400", "é", "$JS.API.STREAM.DELETE.X",
		strings.Repeat("x", 64), strings.Repeat("x", 65), strings.Repeat("x", 128), strings.Repeat("x", 129), "06dabzyw00005p697tnzpaps5m", "Queued", "completed",
		"019aa60d-5480-7000-8a3c-6f1d2b4e5a60", ids.NewRequestID(time.Now().Add(time.Duration(d.IntN(8)-4)*time.Second)).String(), "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
}

// value is any JSON value.
func (d dice) value(depth int) any {
	switch d.IntN(8) {
	case 0:
		return nil
	case 1:
		return d.one(2)
	case 2:
		return d.number()
	case 3:
		return pick(d, 0.5, -0.1, 1e308, 1e-308, 100.0, 1e2, 1.8e19)
	case 4, 5:
		return d.text()
	case 6:
		all := make([]any, d.IntN(4))
		for i := range all {
			if depth > 0 {
				all[i] = d.value(depth - 1)
			}
		}
		return all
	default:
		all := map[string]any{}
		for range d.IntN(4) {
			if depth > 0 {
				all[pick(d, "a", "data", "type", "task_id", "wait_ms", "tasks", d.text())] = d.value(depth - 1)
			}
		}
		return all
	}
}

// json is a mutation of a JSON body.
func (d dice) json(good []byte, fields []string) []byte {
	var body any
	if err := json.Unmarshal(good, &body); err != nil {
		panic(err)
	}
	for range pick(d, 0, 1, 1, 1, 2, 3) {
		body = d.change(body, fields)
	}
	out, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	if d.one(12) {
		out = d.bytes(out)
	}
	return out
}

// change changes something in v.
func (d dice) change(v any, fields []string) any {
	switch v := v.(type) {
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		switch {
		case d.one(8):
			field := pick(d, fields...)
			if v[field] = d.value(3); field == "request_id" {
				v[field] = d.text()
			}
		case len(keys) == 0 || d.one(12):
			return d.value(3)
		case d.one(8):
			delete(v, pick(d, keys...))
		default:
			k := pick(d, keys...)
			v[k] = d.change(v[k], fields)
		}
		return v
	case []any:
		switch {
		case d.one(100):
			return slices.Repeat(v, 1+1100/max(len(v), 1))
		case len(v) == 0 || d.one(6):
			return append(v, d.value(3))
		case d.one(12):
			return d.value(3)
		}
		i := d.IntN(len(v))
		v[i] = d.change(v[i], fields)
		return v
	case float64:
		if !d.one(4) {
			return pick(d, float64(d.number()), v+1, v-1, math.Round(v/2))
		}
	case string:
		if !d.one(4) {
			return pick(d, d.text(), v+v, v+d.text(), string(d.bytes([]byte(v))))
		}
	}
	return d.value(3)
}

// bytes is a mutation of bytes.
func (d dice) bytes(b []byte) []byte {
	b = slices.Clone(b)
	for range 1 + d.IntN(3) {
		if len(b) == 0 {
			return []byte{byte(d.IntN(256))}
		}
		at := d.IntN(len(b))
		to := at + d.IntN(min(len(b)-at, 16)+1)
		switch d.IntN(5) {
		case 0:
			b[at] ^= 1 << d.IntN(8)
		case 1:
			b = slices.Delete(b, at, to)
		case 2:
			b = slices.Insert(b, at, slices.Clone(b[at:to])...)
		case 3:
			b = b[:at]
		default:
			b = slices.Insert(b, at, byte(d.IntN(256)))
		}
	}
	return b
}

// protobuf is a mutation of an encoded message.
func (d dice) protobuf(b []byte) []byte {
	b = slices.Clone(b)
	for range pick(d, 0, 1, 1, 1, 2, 3) {
		switch d.IntN(4) {
		case 0:
			b = d.bytes(b)
		case 1:
			b = protowire.AppendVarint(protowire.AppendTag(b, d.field(), protowire.VarintType), uint64(d.number()))
		case 2:
			b = protowire.AppendBytes(protowire.AppendTag(b, d.field(), protowire.BytesType), []byte(d.text()))
		default:
			inner := d.bytes(b[:min(len(b), 1<<d.IntN(10))])
			b = protowire.AppendBytes(protowire.AppendTag(b, d.field(), protowire.BytesType), inner)
		}
	}
	return b
}

func (d dice) field() protowire.Number {
	return protowire.Number(pick(d, 1+d.IntN(12), 1+d.IntN(40), 1<<29-1))
}
