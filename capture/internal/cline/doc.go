// Package cline reads the sessions of cline: the documents with the messages of a session that it
// keeps below ~/.cline/data/sessions, and the output of cline --json.
//
// The document beside the messages, <id>.json, tells the prompt, the folder, and how the session
// ended; without it the messages tell the end as far as they can. Results of tools are messages of
// the user, and so are texts that cline writes itself, which begin with [SYSTEM]. Whether a call
// failed is told by each item of its result. The input of a call of the model holds the tokens of the
// cache, and its output the reasoning.
//
// The output of a process tells no session: beside its session in one folder it is another one.
package cline
