package gpu

import (
	"encoding/binary"
	"fmt"

	"weir/engine/device"
	"weir/engine/kernels"
)

// State is what the model remembers of a row of tokens, on the device.
type State struct {
	m      *Model
	length int
	room   int             // positions that keys and values have room for
	key    []device.Buffer // by attention layer: bfloat16 [room][kvHeads][headDim]
	value  []device.Buffer
	delta  []device.Buffer // by delta layer: float32 [valueHeads][keyDim][valueDim]
	conv   []device.Buffer // by delta layer: float32 [4][channels], position p in row p&3
	step   device.Buffer   // the record of a decode step, see setStep
	decode map[recording]device.Program
	broken bool
	cause  error // why it is broken, if a chunk failed that nobody waited for
}

// NewState returns the memory of nothing.
func (m *Model) NewState() (*State, error) {
	defer m.mu.Unlock()
	if err := m.begin(); err != nil {
		return nil, err
	}
	return m.newState()
}

func (m *Model) newState() (*State, error) {
	s := &State{m: m, decode: map[recording]device.Program{}}
	var err error
	alloc := func(n int64) device.Buffer {
		var b device.Buffer
		if err == nil {
			b, err = m.alloc(n)
		}
		return b
	}
	s.step = alloc(stepBytes)
	for range m.deltaLayers {
		s.delta = append(s.delta, alloc(m.deltaBytes()))
		s.conv = append(s.conv, alloc(m.convBytes()))
	}
	if err != nil {
		s.release()
		return nil, fmt.Errorf("make room for a state of %d MB: %w", m.FixedBytes()>>20, err)
	}
	m.live[s] = struct{}{}
	return s, nil
}

func (m *Model) deltaBytes() int64 {
	return 4 * int64(m.c.LinearValueHeads*m.c.LinearKeyDim*m.c.LinearValueDim)
}
func (m *Model) convBytes() int64 { return 4 * 4 * int64(m.c.ConvChannels()) }

// rowBytes is a position's keys, or values, of one layer.
func (m *Model) rowBytes() int64 { return 2 * int64(m.c.NumKVHeads*m.c.HeadDim) }

// FixedBytes is the size of a state without keys and values.
func (m *Model) FixedBytes() int64 {
	return int64(m.deltaLayers) * (m.deltaBytes() + m.convBytes())
}

// Bytes is the size of the state.
func (s *State) Bytes() int64 {
	return s.m.FixedBytes() + int64(len(s.key))*2*int64(s.room)*s.m.rowBytes()
}

// Len is the number of tokens it has seen.
func (s *State) Len() int { return s.length }

// Clone returns a state with the same past and a future of its own. A spare one
// has no room for more until it is extended.
func (s *State) Clone(spare bool) (*State, error) {
	m := s.m
	defer m.mu.Unlock()
	if err := m.begin(); err != nil {
		return nil, err
	}
	if err := s.usable(); err != nil {
		return nil, err
	}
	c, err := m.newState()
	if err != nil {
		return nil, err
	}
	copies := &device.Stream{}
	for i := range s.delta {
		copies.Add(kernels.CopyWords(device.Whole(s.delta[i]), device.Whole(c.delta[i]), int(m.deltaBytes()/4)))
		copies.Add(kernels.CopyWords(device.Whole(s.conv[i]), device.Whole(c.conv[i]), int(m.convBytes()/4)))
	}
	if err := m.play(copies); err != nil {
		c.release()
		return nil, fmt.Errorf("copy state: %w", err)
	}
	unit := m.block
	if spare {
		unit = kernels.AttendCacheUnit
	}
	if err := c.take(s, roundUp(s.length, unit)); err != nil {
		c.release()
		return nil, fmt.Errorf("copy state: %w", err)
	}
	c.length = s.length
	return c, nil
}

// reserve makes room for n positions without keeping what is there.
func (s *State) reserve(n int) error {
	length := s.length
	s.length = 0
	defer func() { s.length = length }()
	return s.take(s, roundUp(n, s.m.block))
}

// take makes room for at least room positions, as far as a context may have
// them, and copies those of from.
func (s *State) take(from *State, room int) error {
	m := s.m
	room = min(room, roundUp(m.c.MaxPositions, kernels.AttendCacheUnit))
	if room <= s.room {
		return nil
	}
	for i := range m.attentionLayers {
		for _, kv := range []*[]device.Buffer{&s.key, &s.value} {
			old := from.key
			if kv == &s.value {
				old = from.value
			}
			b, err := m.alloc(int64(room) * m.rowBytes())
			if err != nil {
				return fmt.Errorf("room for %d positions, %d MB: %w", room, int64(room)*m.rowBytes()*int64(2*m.attentionLayers)>>20, err)
			}
			if from.length > 0 {
				used := int64(from.length) * m.rowBytes()
				s := &device.Stream{}
				s.Add(kernels.CopyWords(device.Part(old[i], 0, used), device.Part(b, 0, used), int(used/4)))
				if err := m.play(s); err != nil {
					m.free(b)
					return err
				}
			}
			if i < len(*kv) {
				m.free((*kv)[i])
				(*kv)[i] = b
			} else {
				*kv = append(*kv, b)
			}
		}
	}
	s.room = room
	return nil
}

// grow makes room for n positions in all. Recorded steps refer to the old
// memory and are dropped.
func (s *State) grow(n int) error {
	if n <= s.room {
		return nil
	}
	s.dropPrograms()
	return s.take(s, roundUp(n, s.m.block))
}

func (s *State) dropPrograms() {
	for k, p := range s.decode {
		_ = p.Close() // nothing can be done about it, and nothing depends on it
		delete(s.decode, k)
	}
}

// Free gives the state's memory back, at the latest when the model computes
// next. It is called once.
func (s *State) Free() {
	s.m.dead.Lock()
	defer s.m.dead.Unlock()
	s.m.freed = append(s.m.freed, s)
}

// Rest says that the state will be copied and not extended: what only that
// needs is given back, at the latest when the model computes next.
func (s *State) Rest() {
	s.m.dead.Lock()
	defer s.m.dead.Unlock()
	s.m.resting = append(s.m.resting, s)
}

// sweep frees the states that were given back.
func (m *Model) sweep() {
	m.dead.Lock()
	freed, resting := m.freed, m.resting
	m.freed, m.resting = nil, nil
	m.dead.Unlock()
	for _, s := range resting {
		s.dropPrograms()
	}
	for _, s := range freed {
		s.release()
	}
}

func (s *State) release() {
	delete(s.m.live, s)
	s.dropPrograms()
	for _, list := range [][]device.Buffer{s.key, s.value, s.delta, s.conv, {s.step}} {
		for _, b := range list {
			s.m.free(b)
		}
	}
	*s = State{m: s.m, broken: true}
}

const stepBytes = 16

// stepRecord is what kernels read as struct Step: the token to embed (decode
// only), the position of the first token, how many there are.
func stepRecord(token int32, pos, n int) []byte {
	b := make([]byte, stepBytes)
	binary.LittleEndian.PutUint32(b, uint32(token))
	binary.LittleEndian.PutUint32(b[4:], uint32(pos))
	binary.LittleEndian.PutUint32(b[8:], uint32(n))
	return b
}
