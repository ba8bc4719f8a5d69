package mix

import "strings"

// The texts of which outputs are parts.
var (
	plainOutput = strings.Repeat("the handler answers on every route of the second version and writes the status, "+
		"the uptime in seconds and the name of the build; the test calls it once with and once without a body, "+
		"and then compares what came back with the file ", 16)
	escapedOutput = strings.Repeat("ok  \texample.com/api\t0.012s\n"+
		"--- FAIL: TestHealth (0.00s)\n    health_test.go:14: got \"down\", want \"up\"\n", 30)
	foreignOutput = strings.Repeat("Die Prüfung läuft über größere Mengen; "+
		"résumé déjà vu, привет мир, 世界は広い, naïve façade — übrig bleibt ½ Ω. ", 26)
)
