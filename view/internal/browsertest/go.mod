// Not released: it tests package view in a browser.
module github.com/agentevents/agentevents/view/internal/browsertest

go 1.26

require (
	github.com/agentevents/agentevents v0.1.0
	github.com/chromedp/cdproto v0.159.0
	github.com/chromedp/chromedp v0.23.0
	github.com/stretchr/testify v1.12.1
)

require (
	github.com/go-json-experiment/json v0.0.0-20260213210345-44df1a37e875 // indirect
	github.com/google/uuid v1.6.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)

replace github.com/agentevents/agentevents => ../../../
