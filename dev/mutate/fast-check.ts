import fc from 'fast-check'

// The same cases for every mutant, or a result could not be repeated. Fewer of them, and the first
// that fails is enough: nobody reads a counterexample here.
fc.configureGlobal({ seed: 20_240_607, numRuns: 40, endOnFailure: true })

// oxlint-disable-next-line import/no-default-export -- it stands in for a module that has one
export default fc
