// Package agentevents has every shape of field that the generator supports,
// for TestShapes. It stands in for the root package.
package agentevents

import "time"

const (
	KindEmpty  Kind = "empty"
	KindShapes Kind = "shapes"
)

var catalog = [...]KindInfo{
	{Kind: KindShapes},
	{Kind: KindEmpty},
}

// Empty is a payload without fields.
type Empty struct {
	extra extras
}

// Shapes is a payload with all optional shapes first, then the required ones.
type Shapes struct {
	OText    string              `json:"oText,omitzero" class:"content"`
	OOpen    Open                `json:"oOpen,omitzero" class:"meta"`
	OWord    Word                `json:"oWord,omitzero" class:"meta"`
	OBool    bool                `json:"oBool,omitzero" class:"meta"`
	OInt     int                 `json:"oInt,omitzero" class:"meta" check:"min=2"`
	OInt64   int64               `json:"oInt64,omitzero" class:"meta"`
	OUint64  uint64              `json:"oUint64,omitzero" class:"meta"`
	OFloat   float64             `json:"oFloat,omitzero" class:"meta"`
	OJSON    JSON                `json:"oJson,omitzero" class:"content"`
	OTime    time.Time           `json:"oTime,omitzero" class:"meta"`
	OMillis  time.Duration       `json:"oMillis,omitzero" class:"meta" check:"min=2"`
	ORef     *Inner              `json:"oRef,omitzero" class:"meta"`
	OTexts   []string            `json:"oTexts,omitzero" class:"content"`
	ODict    map[string]string   `json:"oDict,omitzero" class:"content"`
	PText    Opt[string]         `json:"pText,omitzero" class:"secret"`
	POpen    Opt[Open]           `json:"pOpen,omitzero" class:"content"`
	PWord    Opt[Word]           `json:"pWord,omitzero" class:"meta"`
	PBool    Opt[bool]           `json:"pBool,omitzero" class:"meta"`
	PUint64  Opt[uint64]         `json:"pUint64,omitzero" class:"meta"`
	PJSON    Opt[JSON]           `json:"pJson,omitzero" class:"content"`
	PTime    Opt[time.Time]      `json:"pTime,omitzero" class:"meta"`
	PInner   Opt[Inner]          `json:"pInner,omitzero" class:"meta"`
	Text     string              `json:"text" class:"content"`
	RJSON    JSON                `json:"rJson" class:"content" broken:"object"`
	Ref      *Inner              `json:"ref" class:"meta"`
	Inner    Inner               `json:"inner" class:"meta"`
	Opens    []Open              `json:"opens" class:"meta"`
	Words    []Word              `json:"words" class:"meta"`
	Inners   []Inner             `json:"inners" class:"meta"`
	Refs     []*Inner            `json:"refs" class:"meta"`
	Values   []JSON              `json:"values" class:"content"`
	Ints     []int               `json:"ints" class:"meta" check:"required,min=1"`
	Uints    []uint64            `json:"uints" class:"meta"`
	DText    map[string]Open     `json:"dText" class:"meta"`
	DInt     map[string]int      `json:"dInt" class:"meta"`
	DInt64   map[string]int64    `json:"dInt64" class:"meta"`
	DFloat   map[string]float64  `json:"dFloat" class:"meta"`
	DBool    map[string]bool     `json:"dBool" class:"meta"`
	DJSON    map[string]JSON     `json:"dJson" class:"content"`
	DInner   map[string]Inner    `json:"dInner" class:"meta"`
	DRef     map[string]*Inner   `json:"dRef" class:"meta"`
	DTexts   map[string][]string `json:"dTexts" class:"content"`
	Skipped  func()              `json:"-"`
	internal int

	extra extras
}

// Inner is a value.
type Inner struct {
	Name string `json:"name" class:"content" check:"required"`

	extra extras
}

func (v *Inner) checkMore() *fieldError {
	if v.Name == "more" {
		return &fieldError{RuleFieldRange, "/name", "more"}
	}
	return nil
}

// Record is a record: it knows no extras.
type Record struct {
	Name   string             `json:"name"`
	Word   Word               `json:"word"`
	When   time.Time          `json:"when,omitzero"`
	Texts  []string           `json:"texts"`
	Nums   map[string]int64   `json:"nums"`
	Inner  Inner              `json:"inner"`
	Kids   []Record           `json:"kids"`
	ByName map[string]*Record `json:"byName,omitzero"`
	Parent *Record            `json:"parent"`
	Opt    Opt[Inner]         `json:"opt,omitzero"`
	Part   Part               `json:"part"`
}

// Part is a record in a record.
type Part struct {
	List []int `json:"list"`
}

// Whole embeds a record and a value, and has fields that are not exported.
type Whole struct {
	Head string `json:"head"`
	part
	Note
	buf   []byte            `wire:"buf"`
	spare []byte            `wire:"spare,omitzero"`
	bufs  map[string][]byte `wire:"bufs,omitzero"`
	rest  rest              `wire:"rest"`
	more  Opt[rest]         `wire:"more,omitzero"`
	rests map[string]*rest  `wire:"rests,omitzero"`
	owner *Whole            // not on the wire
	Calls func()            `json:"-"`
}

type part struct {
	deeper
	Names []string `json:"names"`
	cache []string // not on the wire
}

type deeper struct {
	depth int `wire:"depth,omitzero"`
}

// Note is a value.
type Note struct {
	Text string `json:"text" class:"content"`

	extra extras
}

// rest is a record of a type that is not exported.
type rest struct {
	lists map[string][]int `wire:"lists"`
	parts []part           `wire:"parts"`
}

type Open string

type Word string

func (w Word) known() bool { return w == "yes" || w == "no" }

func (Word) words() []Word { return []Word{"yes", "no"} }
