//go:build !goexperiment.jsonv2

package main

const stdJSON = "version 1"
