// Reads logs of AG-UI from stdin, one JSON object per line and a blank line between
// logs, and prints what the schemas of @ag-ui/core and the order check of @ag-ui/client
// refuse: the number of the line, then why.
const { EventSchemas } = require("@ag-ui/core/schemas");
const { verifyEvents } = require("@ag-ui/client");
const { from } = require("rxjs");
const lines = require("fs").readFileSync(0, "utf8").split("\n");
let log = [];
const verify = () => {
  if (log.length > 0)
    from(log).pipe(verifyEvents()).subscribe({ error: (e) => console.log("order: " + e.message) });
  log = [];
};
lines.forEach((line, i) => {
  if (line === "") return verify();
  const parsed = EventSchemas.safeParse(JSON.parse(line));
  if (!parsed.success) console.log(`${i + 1}: ${parsed.error.issues[0].path} ${parsed.error.issues[0].message}`);
  log.push(JSON.parse(line));
});
verify();
