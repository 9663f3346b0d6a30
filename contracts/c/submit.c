// Submits a task and waits for its result: submit DOMAIN TASKLIST TYPE PAYLOAD
#include <string.h>

#include "yardmaster.h"

int main(int argc, char **argv) {
	natsConnection *nc = NULL;
	char body[8192], id[37], code[32] = "UNAVAILABLE";
	yard_request_id(id);
	snprintf(body, sizeof body, "{\"request_id\":\"%s\",\"tasklist\":\"%s\",\"wait\":true,\"tasks\":[{\"type\":\"%s\",\"payload\":%s}]}", id,
		argc > 2 ? argv[2] : "mail", argc > 3 ? argv[3] : "email.send", argc > 4 ? argv[4] : "{\"to\":\"ann@example.com\"}");
	if (yard_connect(&nc) != NATS_OK) {
		nats_PrintLastErrorStack(stderr);
		return 1;
	}
	natsMsg *answer = NULL;
	// Nothing was stored, or this is unknown. Sent again with its id, the task is stored once.
	for (int pause = 50; !answer && pause < 10000 && strstr("UNAVAILABLE RESOURCE_EXHAUSTED UNKNOWN", code); pause *= 2) {
		if (pause > 50) nats_Sleep(pause);
		answer = yard_ask(nc, argc > 1 ? argv[1] : "shop", "tasks.submit", body, 42000, code);
	}
	if (answer) {
		json task = json_member(yard_body(answer), "task"), result = json_member(task, "result"), state = json_string(json_member(task, "state"));
		printf("%.*s %.*s\n", (int)state.len, state.text ? state.text : "", (int)result.len, result.text ? result.text : "");
	} else {
		fprintf(stderr, "%s\n", code);
	}
	natsMsg_Destroy(answer);
	natsConnection_Destroy(nc);
	nats_Close();
	return !answer;
}
