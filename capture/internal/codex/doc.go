// Package codex reads the sessions of Codex: the rollouts that it keeps below
// ~/.codex/sessions, a file for each thread, and the output of codex exec --json.
//
// A rollout is two logs in one. A response_item is a part of the conversation as the model sees
// it, an event_msg is a message for a screen. Calls, texts and reasoning are taken from the first,
// turns, ends and how calls went from the second; a fact that both tell counts once. Tokens come
// from token_usage_record, once by the answer's id; rollouts of
// versions before it have running totals (token_count), of which the differences count.
package codex
