package runstore

// SaveIndexAlways has a store save its index however short its log is.
func (o Options) SaveIndexAlways() Options {
	o.unsavedMost = 1
	return o
}

// ReadAtOpen returns how many bytes of the log were read since the index was saved.
func (f *File) ReadAtOpen() int64 { return f.index.unsaved }
