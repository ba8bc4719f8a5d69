// Package logfile keeps a log on disk.
package logfile
