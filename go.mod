module github.com/agentevents/agentevents

go 1.26

require github.com/google/uuid v1.6.0

// Only tests need these: a program that imports the library does not compile
// them.
require (
	github.com/stretchr/testify v1.12.1
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)
