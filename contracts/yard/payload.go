package yard

import (
	"encoding/json"
	"reflect"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard/coded"
)

// Limits of the engine that the SDK must keep itself: a single result over its limit would have the whole batch of outcomes refused. Bytes.
const (
	payloadBytesMax   = 256 << 10
	progressBytesMax  = 4096
	messageBytesMax   = 4096
	errorTypeBytesMax = 128
	workerBytesMax    = 128
	versionBytesMax   = 64
)

// Payload is a task's input, result or progress as it travels.
type Payload struct {
	// Data is one JSON value, or any bytes if Binary is set. Empty = none.
	Data   []byte
	Binary bool
}

// NewPayload encodes v: nil is none; a Payload and a json.RawMessage are used unchanged; a []byte is binary and used unchanged; everything else is
// encoded by encoding/json. The error is INVALID_ARGUMENT.
func NewPayload(v any) (Payload, error) {
	switch v := v.(type) {
	case nil:
		return Payload{}, nil
	case Payload:
		return v, nil
	case json.RawMessage:
		return Payload{Data: v}, nil
	case []byte:
		return Payload{Data: v, Binary: true}, nil
	}
	data, err := json.Marshal(v)
	if err != nil {
		return Payload{}, fault.New(fault.InvalidArgument, "the payload does not encode: %v", err)
	}
	return Payload{Data: data}, nil
}

// Decode is the inverse of NewPayload: v points to a Payload, a json.RawMessage, a []byte (which takes the data whatever its encoding) or a value for
// encoding/json. Without data v stays as it is. The error is INVALID_ARGUMENT.
func (p Payload) Decode(v any) error {
	switch v := v.(type) {
	case *Payload:
		*v = p
		return nil
	case *[]byte:
		*v = p.Data
		return nil
	}
	if len(p.Data) == 0 {
		return nil
	}
	if p.Binary {
		return fault.New(fault.InvalidArgument, "the payload is binary: take it as a []byte")
	}
	if raw, ok := v.(*json.RawMessage); ok {
		*raw = p.Data
		return nil
	}
	if err := json.Unmarshal(p.Data, v); err != nil {
		return fault.New(fault.InvalidArgument, "the payload does not fit %s: %v", reflect.TypeOf(v).Elem(), err)
	}
	return nil
}

// stored returns p as the engine gets it, or the error with which the engine would refuse it.
func (p Payload) stored(content coded.Codec, bytesMax int) (*yardv1.Payload, error) {
	w := p.wire()
	if w == nil {
		return nil, nil
	}
	if !p.Binary && len(p.Data) > 0 && !codec.ValidJSON(p.Data) {
		return nil, fault.New(fault.InvalidArgument, "it is not one valid JSON value")
	}
	if err := coded.Encode(content, w); err != nil {
		return nil, err
	}
	if len(w.Data) > bytesMax {
		return nil, fault.New(fault.InvalidArgument, "%d bytes are more than the %d allowed", len(w.Data), bytesMax)
	}
	return w, nil
}

func (p Payload) wire() *yardv1.Payload {
	if len(p.Data) == 0 && !p.Binary {
		return nil
	}
	w := &yardv1.Payload{Data: p.Data}
	if p.Binary {
		w.Encoding = yardv1.Encoding_ENCODING_BINARY
	}
	return w
}

func payloadOf(w *yardv1.Payload) Payload {
	return Payload{Data: w.GetData(), Binary: w.GetEncoding() == yardv1.Encoding_ENCODING_BINARY}
}

// milliseconds rounds up: a wait that was asked for is not dropped.
func milliseconds(d time.Duration) int64 {
	ms := d.Milliseconds()
	if d > 0 && d%time.Millisecond != 0 {
		ms++
	}
	return ms
}
