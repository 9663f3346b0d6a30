package coded

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
)

// exchange is a request to a codec server and its answer: a short form of the codec server contract of Temporal
// (https://docs.temporal.io/production-deployment/data-encryption), of which we need the data only.
type exchange struct {
	Payloads []exchanged `json:"payloads"`
}

type exchanged struct {
	// Data is in base64 in JSON.
	Data []byte `json:"data"`
}

const (
	// exchangeBytesMax bounds a request and an answer, bytes, contentBytesMax the content in an answer, which base64 makes a third longer; exchangeMax is how
	// many payloads are in one.
	exchangeBytesMax = 32 << 20
	contentBytesMax  = exchangeBytesMax / 4 * 3
	exchangeMax      = 1000
	// remoteTimeout bounds one request: a page waits for it.
	remoteTimeout = 5 * time.Second
)

// Handler is a codec server: POST /decode decodes with c, and POST /encode encodes, so that a command or a console reads content without keys of
// its own. It asks for no login: put it behind the logins of your people. The body is
// {"payloads":[{"data":"<base64>"}]}, of at most 1,000 payloads and 32 MiB, and so is the answer. 400: the body is malformed, a payload does not
// decode, or the answer would be longer.
func Handler(c Codec) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /encode", each(c.Encode))
	mux.Handle("POST /decode", each(c.Decode))
	return mux
}

func each(do func([]byte) ([]byte, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var all exchange
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, exchangeBytesMax)).Decode(&all); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if len(all.Payloads) > exchangeMax {
			http.Error(w, fmt.Sprintf("payloads: %d are more than %d", len(all.Payloads), exchangeMax), http.StatusBadRequest)
			return
		}
		bytes := 0
		for i := range all.Payloads {
			data, err := do(all.Payloads[i].Data)
			if bytes += len(data); err == nil && bytes > contentBytesMax {
				err = fmt.Errorf("the answer would have more than %d bytes", contentBytesMax)
			}
			if err != nil {
				http.Error(w, fmt.Sprintf("payloads[%d]: %v", i, err), http.StatusBadRequest)
				return
			}
			all.Payloads[i].Data = data
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_ = json.NewEncoder(w).Encode(all) // an error is that of a client that is not there any more
	}
}

type remote struct {
	url    string
	client *http.Client
}

// Remote is the codec of a codec server at a URL, without the last part /encode or /decode. Each piece of content is a request, which takes 5 s at
// most: it is made for a command or a page, not for workers. A nil client is http.DefaultClient; another one may send a login along.
func Remote(url string, client *http.Client) Codec {
	if client == nil {
		client = http.DefaultClient
	}
	return &remote{strings.TrimSuffix(url, "/"), client}
}

func (r *remote) Encode(data []byte) ([]byte, error) { return r.ask("/encode", data) }

func (r *remote) Decode(data []byte) ([]byte, error) { return r.ask("/decode", data) }

func (r *remote) ask(what string, data []byte) ([]byte, error) {
	body, err := json.Marshal(exchange{[]exchanged{{data}}})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), remoteTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url+what, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := r.client.Do(req)
	if err != nil {
		return nil, fault.New(fault.Unavailable, "%v", err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, exchangeBytesMax))
	if err != nil || resp.StatusCode >= http.StatusInternalServerError {
		return nil, fault.New(fault.Unavailable, "the codec server answered %s: %v", resp.Status, err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the codec server answered %s: %.200s", resp.Status, strings.TrimSpace(string(answer)))
	}
	var all exchange
	if err := json.Unmarshal(answer, &all); err != nil {
		return nil, fmt.Errorf("the codec server: %w", err)
	}
	if len(all.Payloads) != 1 {
		return nil, errors.New("the codec server answered with another number of payloads")
	}
	return all.Payloads[0].Data, nil
}
