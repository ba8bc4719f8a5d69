package wire

// Done is the data of the last frame of a stream of Server-Sent Events, as servers of models
// send it. It is no event.
const Done = "[DONE]"
