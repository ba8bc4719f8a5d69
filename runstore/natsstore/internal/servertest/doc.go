// Package servertest tests package natsstore with nats-server processes on loopback: a single server,
// and clusters of three whose servers are killed.
package servertest
