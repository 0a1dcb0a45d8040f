import { describe, expect, it } from 'vitest'
import { type Member, ready } from '../src/fleet.ts'

const member = (isReady: boolean): Member => ({
  name: 'consumer-1',
  isReady,
  isAlive: true,
  inFlight: 1,
  signal: () => undefined,
  gone: Promise.resolve(),
  stop: () => Promise.resolve(),
  busy: () => Promise.resolve(0),
})

describe('a fleet', () => {
  it('is ready when so many members are', async () => {
    const members = () => [member(true), member(false), member(true)]
    await expect(ready({ members, isSupervised: false }, 2)).resolves.toBeUndefined()
  })

  it('is given up at once when one has ended that nobody replaces', async () => {
    const members = () => [member(true)]
    await expect(ready({ members, isSupervised: false }, 2)).rejects.toThrow(
      'only 1 of 2 consumers are left',
    )
  })

  it('is waited for while those that end are replaced', async () => {
    let looks = 0
    const members = () => {
      looks += 1
      return looks === 1 ? [] : [member(true)]
    }
    await expect(ready({ members, isSupervised: true }, 1)).resolves.toBeUndefined()
  })
})
