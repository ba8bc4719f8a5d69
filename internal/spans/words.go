package spans

// A Semconv is a version of the GenAI conventions. Names that all versions share are
// used in any case.
type Semconv string

// The versions.
const (
	SemconvShared Semconv = ""       // what v1.41.0 and the latest have in common
	SemconvV1_41  Semconv = "1.41.0" // the last version in the main conventions
	SemconvLatest Semconv = "latest" // the repository of the GenAI conventions, which has no release
)

// SchemaURL is that of the version, or "" for none: only v1.41.0 is published.
func (v Semconv) SchemaURL() string {
	if v == SemconvV1_41 {
		return "https://opentelemetry.io/schemas/1.41.0"
	}
	return ""
}
