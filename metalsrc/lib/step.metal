// The record of the step that the stream plays: the token to be read, the
// position of the step's first token, and how many tokens it has. The last
// kernel of a decode step leaves it ready for the next, so that decoding is one
// constant stream played again and again.
struct Step {
  uint token, pos, n, pad;
};
