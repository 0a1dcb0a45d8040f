import { describe, expect, it } from 'vitest'
import { overSince } from '../src/harness/wait-until-quiet.ts'

const look = (at: number, hasAll = true, isQuiet = true) => ({ at, hasAll, isQuiet })

describe('the end of a run', () => {
  it('is the first of two observations in a row that report it', () => {
    expect(overSince(look(1), look(2))).toBe(1)
  })

  it('is not reported after a single observation', () => {
    expect(overSince(undefined, look(1))).toBeUndefined()
    expect(overSince(look(1), look(2, false))).toBeUndefined()
    expect(overSince(look(1), look(2, true, false))).toBeUndefined()
    expect(overSince(look(1, false), look(2))).toBeUndefined()
    expect(overSince(look(1, true, false), look(2))).toBeUndefined()
  })
})
