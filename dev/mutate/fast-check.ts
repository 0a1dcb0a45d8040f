import fc from 'fast-check'

// The same cases for every mutant, so that a result can be repeated. Fewer cases than usual,
// without shrinking: no person reads a counterexample here.
fc.configureGlobal({ seed: 20_240_607, numRuns: 40, endOnFailure: true })

// oxlint-disable-next-line import/no-default-export -- it replaces a module that has one
export default fc
