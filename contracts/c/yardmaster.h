// A client of Yardmaster in C: libnats, JSON, and these few functions. Copy them.
#ifndef YARDMASTER_H
#define YARDMASTER_H

#include <nats/nats.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

// A value in a JSON text, which must live on. No text = there is none.
typedef struct {
	const char *text;
	size_t len;
} json;

// The member of an object, or none. Names with escapes are not found.
json json_member(json object, const char *name);

// The value of an array that follows `last`, or the first one where last is none.
json json_next(json array, json last);

// A whole number, or `otherwise` where there is none.
int64_t json_int(json value, int64_t otherwise);

// The text between the quotes of a string, escapes as they stand: enough for ids, tokens and codes.
json json_string(json value);

bool json_is(json value, const char *text);

// Whether a value is one of several words.
bool json_in(json value, const char *words);

// Writes text as a JSON string, cut where there is no room.
void json_quote(char *out, size_t size, const char *text);

// Connects to NATS_URL, again whenever the connection breaks, as the environment says: with the .creds file of NATS_CREDS, or with the seed
// in the file of NATS_NKEY, whose public key is NATS_NKEY_PUBLIC; with TLS to a server whose certificate an authority
// in NATS_CA has signed, and with the certificate of NATS_CERT and its NATS_KEY. Inboxes are below YARD_INBOX_PREFIX.
// Why it failed is in nats_GetLastError.
natsStatus yard_connect(natsConnection **nc);

// Writes a new inbox below YARD_INBOX_PREFIX into `out`.
natsStatus yard_inbox(char *out, size_t size);

// Asks an endpoint of a domain once. The answer is the caller's to destroy. Where it is an error, its code is copied
// into `code`, of at least 32 bytes: UNAVAILABLE where there is no subscriber to answer, UNKNOWN where no answer came, CLOCK
// where nothing was stored under a request id, nor will be, since our clock is off: the next id is made by the engine's.
natsMsg *yard_ask(natsConnection *nc, const char *domain, const char *verb, const char *body, int64_t timeout_ms, char *code);

// Writes a request id, a UUID of version 7, into `out`, of at least 37 bytes. A submit that has one may be sent again.
void yard_request_id(char *out);

// The JSON of an answer.
json yard_body(natsMsg *answer);

// An attempt, as its handler sees it.
typedef struct {
	char task_id[64], token[64], type[72];
	json payload;
	int64_t attempt, timeout_ms, heartbeat_timeout_ms;
	// stop is set when the task was cancelled or went to another attempt: end soon, and fail.
	atomic_bool stop;
} yard_attempt;

// A handler writes its result into `out` as JSON and returns true, or what went wrong as plain text and returns false.
typedef bool (*yard_handler)(yard_attempt *attempt, char *out, size_t size);

// Runs the tasks of a tasklist, one at a time, until `*stop` is set: then it ends what it runs and takes no more.
// Start more processes for more at a time.
natsStatus yard_work(natsConnection *nc, const char *domain, const char *tasklist, yard_handler handle, volatile sig_atomic_t *stop);

#endif
