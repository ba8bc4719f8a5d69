module github.com/agentevents/agentevents/lawtest

go 1.26

require github.com/agentevents/agentevents v0.0.0

replace github.com/agentevents/agentevents => ../
