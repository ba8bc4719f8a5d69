module github.com/agentevents/agentevents/tools/sessions

go 1.26.0
