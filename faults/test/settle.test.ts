import { describe, expect, it } from 'vitest'
import { overSince } from '../src/settle.ts'

const look = (at: number, hasAll = true, isQuiet = true) => ({ at, hasAll, isQuiet })

describe('all is over', () => {
  it('since the first of two looks in a row that say so', () => {
    expect(overSince(look(1), look(2))).toBe(1)
  })

  it('for no single look', () => {
    expect(overSince(undefined, look(1))).toBeUndefined()
    expect(overSince(look(1), look(2, false))).toBeUndefined()
    expect(overSince(look(1), look(2, true, false))).toBeUndefined()
    expect(overSince(look(1, false), look(2))).toBeUndefined()
    expect(overSince(look(1, true, false), look(2))).toBeUndefined()
  })
})
