package openwop

// A Profile selects one of the forms of the document.
type Profile uint8

// The profiles.
const (
	RFC0002  Profile = iota // the names of the RFC's text; the default
	SchemaV1                // the published schema, version 1
	SchemaV2                // the published schema, version 2: other types, closed payloads, grammars for ids
)

// String returns the profile's name.
func (p Profile) String() string {
	switch p {
	case SchemaV1:
		return "SchemaV1"
	case SchemaV2:
		return "SchemaV2"
	}
	return "RFC0002"
}
