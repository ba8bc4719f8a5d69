//go:build goexperiment.jsonv2

package main

const stdJSON = "backed by version 2 (GOEXPERIMENT=jsonv2)"
