package kaos

import "github.com/agentevents/agentevents/dialect"

// Name is the dialect's name, and that of the extra member in which events
// carry what their line said beyond the vocabulary.
const Name = dialect.KAOS
