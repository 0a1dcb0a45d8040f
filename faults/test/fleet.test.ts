import { describe, expect, it } from 'vitest'
import { type Member, ready } from '../src/harness/fleet.ts'

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
  it('is ready when the requested number of members is ready', async () => {
    const members = () => [member(true), member(false), member(true)]
    await expect(ready({ members, isSupervised: false }, 2)).resolves.toBeUndefined()
  })

  it('fails immediately when a member ended and is not replaced', async () => {
    const members = () => [member(true)]
    await expect(ready({ members, isSupervised: false }, 2)).rejects.toThrow(
      'Only 1 of 2 consumers are left',
    )
  })

  it('waits while members that end are replaced', async () => {
    let looks = 0
    const members = () => {
      looks += 1
      return looks === 1 ? [] : [member(true)]
    }
    await expect(ready({ members, isSupervised: true }, 1)).resolves.toBeUndefined()
  })
})
