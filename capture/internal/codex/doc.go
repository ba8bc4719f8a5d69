// Package codex reads the sessions of Codex: the rollouts that it keeps below
// ~/.codex/sessions, a file for each thread, and what codex exec --json prints.
//
// A rollout is two logs in one. A response_item is a part of the conversation as the model sees
// it, an event_msg is what a screen shows. Calls, texts and reasoning are taken from the first,
// turns, ends and how calls went from the second; what one tells, the other's double is not
// counted again. Tokens are those of token_usage_record, once by the answer's id; rollouts of
// versions before it have running totals (token_count), of which the differences count.
package codex
