// Package outbox submits tasks in a transaction of the user's own database: the tasks run if the transaction is committed, and only then.
//
//	ob := outbox.New(outbox.Postgres, "shop")
//	tx, err := db.BeginTx(ctx, nil)
//	…                                  // insert the order
//	_, err = ob.Submit(ctx, tx, task)  // insert the task
//	err = tx.Commit()
//
// Submit inserts a row into the table yard_outbox. A Relay, or the command `yard relay`, carries the rows to the engine.
//
// # Rows and lanes
//
// A row has one or several tasks of one domain. It is sent as a whole, and the engine accepts all of its tasks or none. A row is in one of 16
// lanes. The rows of a lane are sent in the order of their ids, one request after the other, so the lane is what keeps tasks in order. Tasks with
// a key (order key, unique key, batch) are in the lane of the key; other tasks are in a random lane of the other half.
//
// The table yard_outbox_lane has a row for each lane. A relay that works on a lane has a lease on it (owner, until_ms). So there may be any number of
// relays, and databases need neither SKIP LOCKED nor locks that live longer than a statement.
//
// # Exactly once
//
// A relay repeats one turn for each lane, which is one short transaction:
//
//  1. Take or prolong the lease of the lane.
//  2. Apply the outcome of the last request, if no other relay had a turn since: delete the rows that are stored, set aside the rows that are refused.
//  3. Choose the next rows, and write their ids and a new request id into the row of the lane.
//
// Then it sends the request. A relay that dies at any point leaves a lane with or without a request. If there is one, the next relay sends exactly this
// request again, as a repeat. The engine recognizes the request id, stores nothing twice, and returns the same results.
//
// A relay may be paused between its turn and its request, and lose its lease. Its request has the same id as the repeat of the next relay, so the engine
// stores it once. But the answer to its late first try may be a refusal, although the repeat was stored. The row of the lane counts the turns, so the
// paused relay sees that there was another turn: it drops this answer, and repeats the request if the lane still names it.
//
// # The one limit
//
// The engine remembers a request id for 10 minutes, and the id is made when the rows are sent first. So rows that were never sent may wait for
// days. But if the answer to a request is lost, and no relay reaches the engine for the 10 minutes after that, then no one can find out whether these
// tasks (at most 1000 for a lane) were stored. Their rows are set aside as `unknown`. They are neither lost nor sent again by themselves: an operator
// compares the header outbox-id of the tasks, and redrives or deletes the rows.
//
// One crash ends there without an outage. If a relay dies between its turn and its request, and a row of that request is malformed, then the engine
// refuses the repeat for this row. The first try may have been stored all the same, so the lane repeats it until the engine has forgotten the id.
//
// # What is set aside
//
// Rows that the engine refuses for good (such as a tasklist that is drained, or a bad header) are set aside as `refused`, with the reason. Outbox.SetAside
// lists them, Redrive sends them again, Delete removes them. Rows behind them go on. If a limit is full, the domain does not exist yet, or the login
// lacks a right, then the lane waits and tries again: it may come right by itself.
//
// Owns: the two tables, the turn of a lane, the choice of what travels together.
// Never does: open a database, or decide about a task. The engine decides.
// On failure: Submit returns an error, and the caller rolls back. A relay logs, waits and tries again until its context ends.
package outbox
