// Package grammar says which tokens may come next so that a reply is JSON of a
// schema, or a tool call in the model's own form.
//
// Begin at [Compile], which makes a [Grammar] of a [Spec], and
// [Grammar.Start], which begins one reply: [Matcher.Mask] is the tokens that
// may come, [Matcher.Accept] takes the one that did. schema.go reads a schema,
// conjoin.go and compile.go make nodes of it, state.go runs them over bytes,
// mask.go over the tokens of a [Vocab].
//
// A grammar is a tree of nodes with loops, run as a pushdown automaton: a
// configuration is a terminal, how far it is read, and the stack of what
// follows it; a state is a set of them. Terminals are literals, automata over
// bytes (numbers, enumerations, white space) and automata over characters
// (strings), which are read through the spelling of JSON. A mask is the union
// over configurations of the tokens that stay within the terminal, which are
// known without looking at the stack, and of those that leave it, which are
// followed through the vocabulary's trie.
//
// It promises: what a matcher accepted to its end is valid JSON of the schema;
// from every state that a mask leads to the end can be reached; a schema that
// it does not understand wholly is an [*Error] that says where; compiling is
// bounded, whatever the schema. It does not promise every spelling of every
// valid document: members come in the order of the schema, white space is
// bounded, names and enumerated values are written one way, and numbers have
// few digits. docs/engine.md lists it.
//
// Left to others: choosing among the tokens (package engine), and what a
// request may ask for (package local/model).
package grammar
