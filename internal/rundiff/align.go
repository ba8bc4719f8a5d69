package rundiff

import "slices"

// mostEdits is how many elements a piece of an alignment leaves out at most.
const mostEdits = 500

// alignSums is align for lists of hashes. Hashes that only one list has are left out before: they
// cost nothing. swap means that the second list comes first, so that B and A are aligned as A and B
// are.
func alignSums(swap bool, a, b []uint64, match func(i, j int)) {
	if swap {
		alignSums(false, b, a, func(j, i int) { match(i, j) })
		return
	}
	inA, inB := shared(a, b), shared(b, a)
	align(len(inA), len(inB), func(i, j int) bool { return a[inA[i]] == b[inB[j]] },
		func(i, j int) { match(inA[i], inB[j]) })
}

// shared returns the indexes of the elements that the other list has, too.
func shared(list, other []uint64) (at []int) {
	has := make(map[uint64]bool, len(other))
	for _, h := range other {
		has[h] = true
	}
	for i, h := range list {
		if has[h] {
			at = append(at, i)
		}
	}
	return at
}

// align calls match with the indexes of the elements of two lists that stand for each other,
// in their order. It is the greedy algorithm of Myers, "An O(ND) Difference Algorithm and Its
// Variations" (1986): as few elements as possible are left out.
//
// Its time would grow with the square of the differences. So after 500 elements that are left
// out the way that has come furthest is taken, and the rest is aligned from its end on: each
// piece is the best, all of them together need not be. That bounds the time by 500 steps for
// each element, and the memory by half a megabyte.
func align(n, m int, same func(i, j int) bool, match func(i, j int)) {
	rows := [][]int32{{0}} // row d: see furthest
	for i, j := 0, 0; ; {
		for ; i < n && j < m && same(i, j); i, j = i+1, j+1 {
			match(i, j)
		}
		if i == n || j == m {
			return
		}
		d, t := 0, 0
		for most := 0; d < mostEdits && most < n-i+m-j; {
			d, most = d+1, 0
			if d == len(rows) {
				rows = append(rows, make([]int32, d+1))
			}
			row := rows[d]
			for k := range row {
				x, _ := furthest(rows[d-1], k, n-i, m-j)
				y := x - k + d - k
				for ; x >= 0 && i+x < n && j+y < m && same(i+x, j+y); x, y = x+1, y+1 {
				}
				if row[k] = int32(x); x >= 0 && x+y > most {
					most, t = x+y, k
				}
			}
		}
		var back [][2]int
		x := int(rows[d][t])
		end := [2]int{i + x, j + x - t + d - t}
		for ; d > 0; d-- {
			begin, removes := furthest(rows[d-1], t, n-i, m-j)
			for ; x > begin; x-- {
				back = append(back, [2]int{i + x - 1, j + x - 1 - t + d - t})
			}
			if removes {
				x, t = x-1, t-1
			}
		}
		for _, at := range slices.Backward(back) {
			match(at[0], at[1])
		}
		i, j = end[0], end[1]
	}
}

// furthest returns how far in the first list a path comes that leaves out t elements there, before
// it matches any, and whether the last element left out belongs to the first list. row[t] is the
// furthest position of a path with one deletion fewer, or -1.
func furthest(row []int32, t, n, m int) (x int, removes bool) {
	x = -1
	if t < len(row) && row[t] >= 0 && int(row[t])-t+len(row)-t <= m {
		x = int(row[t])
	}
	if t > 0 && row[t-1] >= 0 && int(row[t-1]) < n && int(row[t-1]) >= x {
		return int(row[t-1]) + 1, true
	}
	return x, false
}
