#include "yardmaster.h"

#include <stdlib.h>
#include <string.h>

// How far the engine's clock is ahead of ours, ms, once it is known.
static _Atomic int64_t ahead;

// skip returns what follows a value, or a string, that begins at p.
static const char *skip(const char *p, const char *end) {
	int depth = 0;
	while (p < end) {
		char c = *p++;
		if (c == '"') {
			while (p < end && *p != '"') p += *p == '\\' ? 2 : 1;
			if (p < end) p++;
		} else if (c == '{' || c == '[') {
			depth++;
			continue;
		} else if (c == '}' || c == ']') {
			depth--;
		} else if (depth == 0) {
			while (p < end && !strchr(",]} \t\r\n", *p)) p++;
		}
		if (depth <= 0) break;
	}
	return p < end ? p : end;
}

static const char *space(const char *p, const char *end) {
	while (p < end && strchr(" \t\r\n,:", *p)) p++;
	return p;
}

json json_next(json array, json last) {
	const char *end = array.text + array.len;
	if (array.len == 0 || (*array.text != '[' && *array.text != '{')) return (json){0};
	const char *p = space(last.text ? last.text + last.len : array.text + 1, end);
	if (p >= end || *p == ']' || *p == '}') return (json){0};
	return (json){p, (size_t)(skip(p, end) - p)};
}

json json_member(json object, const char *name) {
	json key = {0};
	while ((key = json_next(object, key)).text) {
		json value = json_next(object, key);
		if (json_is(json_string(key), name)) return value;
		if (!value.text) break;
		key = value;
	}
	return (json){0};
}

int64_t json_int(json value, int64_t otherwise) { return value.text ? strtoll(value.text, NULL, 10) : otherwise; }

json json_string(json value) {
	if (value.len < 2 || *value.text != '"') return (json){0};
	return (json){value.text + 1, value.len - 2};
}

bool json_is(json value, const char *text) { return value.text && value.len == strlen(text) && memcmp(value.text, text, value.len) == 0; }

bool json_in(json value, const char *words) {
	for (const char *word = words; word && value.len > 0; word = strchr(word, ' ')) {
		word += *word == ' ';
		if (strcspn(word, " ") == value.len && memcmp(word, value.text, value.len) == 0) return true;
	}
	return false;
}

void json_quote(char *out, size_t size, const char *text) {
	size_t n = 0;
	out[n++] = '"';
	for (; *text && n + 8 < size; text++) {
		unsigned char c = (unsigned char)*text;
		if (c == '"' || c == '\\') out[n++] = '\\';
		n += (size_t)sprintf(out + n, c < ' ' ? "\\u%04x" : "%c", c);
	}
	memcpy(out + n, "\"", 2);
}

// set is a variable of the environment; one that is empty is none.
static const char *set(const char *name) {
	const char *value = getenv(name);
	return value && *value ? value : NULL;
}

natsStatus yard_connect(natsConnection **nc) {
	natsOptions *options = NULL;
	const char *url = set("NATS_URL"), *creds = set("NATS_CREDS"), *seed = set("NATS_NKEY"), *public = set("NATS_NKEY_PUBLIC");
	const char *ca = set("NATS_CA"), *cert = set("NATS_CERT"), *key = set("NATS_KEY"), *inboxes = set("YARD_INBOX_PREFIX");
	natsStatus s = natsOptions_Create(&options);
	if (s == NATS_OK) s = natsOptions_SetURL(options, url ? url : "nats://127.0.0.1:4222");
	if (s == NATS_OK) s = natsOptions_SetMaxReconnect(options, -1);
	if (s == NATS_OK && creds) s = natsOptions_SetUserCredentialsFromFiles(options, creds, NULL);
	if (s == NATS_OK && seed) s = natsOptions_SetNKeyFromSeed(options, public, seed);
	if (s == NATS_OK && (ca || cert)) s = natsOptions_SetSecure(options, true);
	if (s == NATS_OK && ca) s = natsOptions_LoadCATrustedCertificates(options, ca);
	if (s == NATS_OK && cert) s = natsOptions_LoadCertificatesChain(options, cert, key);
	if (s == NATS_OK && inboxes) s = natsOptions_SetCustomInboxPrefix(options, inboxes);
	if (s == NATS_OK) s = natsConnection_Connect(nc, options);
	natsOptions_Destroy(options);
	return s;
}

natsStatus yard_inbox(char *out, size_t size) {
	const char *prefix = set("YARD_INBOX_PREFIX");
	natsInbox *made = NULL;
	natsStatus s = natsInbox_Create(&made);
	if (s != NATS_OK) return s;
	snprintf(out, size, "%s%s", prefix ? prefix : "_INBOX", strrchr(made, '.'));
	natsInbox_Destroy(made);
	return NATS_OK;
}

natsMsg *yard_ask(natsConnection *nc, const char *domain, const char *verb, const char *body, int64_t timeout_ms, char *code) {
	char subject[192];
	const char *refused = NULL;
	natsMsg *answer = NULL;
	snprintf(subject, sizeof subject, "yard.v1.%s.%s", domain, verb);
	natsStatus s = natsConnection_RequestString(&answer, nc, subject, body, timeout_ms);
	if (s != NATS_OK) {
		strcpy(code, s == NATS_NO_RESPONDERS ? "UNAVAILABLE" : "UNKNOWN");
		return NULL;
	}
	if (natsMsgHeader_Get(answer, "Nats-Service-Error-Code", &refused) == NATS_OK) {
		json body = yard_body(answer), now = json_string(json_member(json_member(body, "detail"), "now_ms"));
		bool clock = now.text && json_is(json_string(json_member(body, "path")), "/request_id");
		if (clock) ahead = json_int(now, 0) - nats_Now();
		snprintf(code, 32, "%s", clock ? "CLOCK" : refused);
		natsMsg_Destroy(answer);
		return NULL;
	}
	*code = '\0';
	return answer;
}

void yard_request_id(char *out) {
	unsigned char chance[10] = {0};
	FILE *random = fopen("/dev/urandom", "r");
	if (!random || fread(chance, sizeof chance, 1, random) != 1) abort(); // without chance it would name another's request
	fclose(random);
	uint64_t ms = (uint64_t)(nats_Now() + ahead);
	int n = sprintf(out, "%08x-%04x-7%01x%02x-%02x%02x-", (unsigned)(ms >> 16 & 0xffffffff), (unsigned)(ms & 0xffff), chance[0] & 15, chance[1],
		128 | (chance[2] & 63), chance[3]);
	for (int i = 4; i < 10; i++) n += sprintf(out + n, "%02x", chance[i]);
}

json yard_body(natsMsg *answer) { return (json){natsMsg_GetData(answer), (size_t)natsMsg_GetDataLength(answer)}; }
