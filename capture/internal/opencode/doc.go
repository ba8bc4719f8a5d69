// Package opencode reads the sessions of opencode: the output of opencode run --format json, and
// the rows of its database as JSON.
//
// The database has tables session, message and part, and a journal: table event, in which each
// change of a session is a row, with seq from 0 without gaps. The journal is read: it
// keeps the messages that a revert deletes from the other tables. The rows of the other tables of a session
// without a whole journal are read as the journal that would have led to them. The rows are in a
// list, are lines, or are in an object with a list for each table.
//
// A sub-agent is a session with a parent. A fork is a session that begins with copies of messages,
// which are older than it. Tokens come from the end of each step, once; a message and a session
// have sums of them. The call of the model that makes the title is in no table.
package opencode
