package engine

// Done is the data of the last frame of a stream of Server-Sent Events, as servers of models
// send it. A reader skips it.
const Done = "[DONE]"
